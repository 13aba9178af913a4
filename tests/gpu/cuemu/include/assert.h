// assert.h would define `assert` anew at each inclusion: the one of cuemu.h stays.
#pragma once
