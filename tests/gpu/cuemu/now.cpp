// The one variable that kernels read at every index: a library of its own, so that its few bytes alone have to find
// room at the fixed distance from the thread pointer that kernels reckon with.
//
// In: nothing. Out: `cuemu_now`, one for each host thread, which the scheduler writes.
#include <cstddef>

#include "language.h"

__thread CuemuNow cuemu_now;
