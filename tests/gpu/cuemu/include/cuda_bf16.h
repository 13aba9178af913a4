// cuda_bf16.h: all of it that there is comes with cuemu.h, which precedes every text.
#pragma once
