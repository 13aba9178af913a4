// Everything a CUDA C text needs in order to be compiled by g++ and run on the CPU.
//
// In: the text of a .cu file, compiled as `g++ -std=c++17 -include cuemu.h text.cu`. Out: a shared object whose
// kernels run on the library in cuemu/ (scheduler.cpp and its neighbours), one fiber a CUDA thread. Example:
//
//     extern "C" __global__ void twice(double* x, long long n) {
//         long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
//         if (i < n) x[i] *= 2;
//     }
//     CUEMU_KERNEL(twice)          // what the stand-in appends for every kernel
//
// The headers declare and the library does the work: the headers are precompiled once, and a text then compiles
// in a twentieth of a second. What is not in CUDA should not compile here either.
#pragma once
#define CUEMU 1

// A text needs no streams and no special functions of the C++ library. To make what is waiting to be made of their
// templates would be most of the work on a text: so <complex> finds that <sstream> is there, and of streams one name.
#define _GLIBCXX_SSTREAM 1
#define _GLIBCXX_BITS_SPECFUN_H 1
#include <iosfwd>
namespace std {
struct ios_base {
    enum { failbit };
};
}  // namespace std

#include <bits/stl_algobase.h>  // std::max, which <complex> has from there
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <complex>
#include <limits>
#include <type_traits>
#include <utility>

#define __CUDA_ARCH__ 900  // after the C++ library, which need not know

#include "cuemu/language.h"
#include "cuemu/threads.h"
#include "cuemu/atomics.h"
#include "cuemu/bits.h"
#include "cuemu/maths.h"
#include "cuemu/half.h"
#include "cuemu/launch.h"
