/* Elementary functions without branches and calls: compilers inline them into loops and do several elements at once,
 * on any machine and with any C library. NaN goes through; signs of zero and infinities are C's. docs/accuracy.md has
 * their errors. Each f64_ function has an f32_ one; maths_of.h is what both share.
 *
 * What is left to the C library is declared by emitted code with MP_LIBRARY, what it is called there, and MP_SIMD where
 * the library's vector functions have it, too: glibc's, from 2.35 on. Elsewhere those of circular.h are called. */
#ifndef METAPHRASE_MATHS_H
#define METAPHRASE_MATHS_H

#include <stdint.h>

#define MP_SIMD __attribute__((const))
#if defined(__GNUC__) && !defined(__clang__) /* clang does not look for vector functions */
#if defined(__GLIBC__) && defined(__x86_64__) && !defined(MP_NO_VECTOR_LIBRARY)
#if __GLIBC_PREREQ(2, 35)
#define MP_VECTOR_LIBRARY
#undef MP_SIMD
#define MP_SIMD __attribute__((simd("notinbranch"), const))
#endif
#endif
#if !defined(MP_VECTOR_LIBRARY) && (defined(__AVX2__) && defined(__FMA__) || defined(__aarch64__))
#define MP_OWN_VECTORS
#endif
#endif
/* A label keeps gcc from taking a name for its builtin and merging sin and cos into one scalar call. */
#ifdef __APPLE__
#define MP_LIBRARY(name) __asm__("_" name)
#else
#define MP_LIBRARY(name) __asm__(name)
#endif

/* Before functions of angles, and behind them: MP_VECTORS(f64, sin). */
#if defined(MP_OWN_VECTORS) && !defined(__FAST_MATH__)
#define MP_CIRCULAR __attribute__((simd("notinbranch"), const))
#define MP_VECTORS(TYPE, function) MP_VECTORS_##TYPE(function)
#else
#define MP_CIRCULAR MP_SIMD
#define MP_VECTORS(TYPE, function)
#endif

#ifdef __FAST_MATH__ /* takes sums apart that these functions are made of */
#define MP_BOTH(function, name)                               \
    MP_SIMD double f64_##function(double) MP_LIBRARY(#name); \
    MP_SIMD float f32_##function(float) MP_LIBRARY(#name "f");
#define MP_BOTH_OF_TWO(function, name)                                \
    MP_SIMD double f64_##function(double, double) MP_LIBRARY(#name); \
    MP_SIMD float f32_##function(float, float) MP_LIBRARY(#name "f");
MP_BOTH(exp, exp)
MP_BOTH(exp2, exp2)
MP_BOTH(expm1, expm1)
MP_BOTH(log, log)
MP_BOTH(log1p, log1p)
MP_BOTH(log2, log2)
MP_BOTH(log10, log10)
MP_BOTH(cbrt, cbrt)
MP_BOTH(arcsin, asin)
MP_BOTH(arccos, acos)
MP_BOTH(arctan, atan)
MP_BOTH(sinh, sinh)
MP_BOTH(cosh, cosh)
MP_BOTH(tanh, tanh)
MP_BOTH(arcsinh, asinh)
MP_BOTH(arccosh, acosh)
MP_BOTH(arctanh, atanh)
MP_BOTH_OF_TWO(arctan2, atan2)
MP_BOTH_OF_TWO(hypot, hypot)
#else

#define MP_INLINE static inline __attribute__((always_inline))
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define mp_f64_fma(a, b, c) __builtin_fma(a, b, c)
#define mp_f32_fma(a, b, c) __builtin_fmaf(a, b, c)
#else /* in software it would take a hundred times as long */
#define mp_f64_fma(a, b, c) ((a) * (b) + (c))
#define mp_f32_fma(a, b, c) ((a) * (b) + (c))
#endif

/* The polynomials are the best ones with coefficients of these types on their ranges (Sollya's fpminimax). */

/* exp(r + c) - 1 for |r| <= log(2)/2 and a tiny c. */
MP_INLINE double mp_f64_small_expm1(double r, double c) {
    double r2 = r * r, r4 = r2 * r2;
    double q0 = mp_f64_fma(r, 0x1.555555555554dp-3, 0x1.0000000000001p-1);
    double q2 = mp_f64_fma(r, 0x1.11111111144d1p-7, 0x1.5555555553cdcp-5);
    double q4 = mp_f64_fma(r, 0x1.a01a018c3894fp-13, 0x1.6c16c178ab20bp-10);
    double q6 = mp_f64_fma(r, 0x1.71de59e3071c1p-19, 0x1.a019b8b55cc94p-16);
    double q8 = mp_f64_fma(r, 0x1.aeabfd5741bf8p-26, 0x1.2891d894a59d6p-22);
    double q = mp_f64_fma(mp_f64_fma(q8, r4, mp_f64_fma(q6, r2, q4)), r4, mp_f64_fma(q2, r2, q0));
    return r + mp_f64_fma(q, r2, c);
}
MP_INLINE float mp_f32_small_expm1(float r, float c) {
    float q = mp_f32_fma(0x1.6ca9aap-10f, r, 0x1.120adp-7f);
    q = mp_f32_fma(q, r, 0x1.55556cp-5f);
    q = mp_f32_fma(q, r, 0x1.5554dep-3f);
    q = mp_f32_fma(q, r, 0.5f);
    return r + mp_f32_fma(q, r * r, c);
}

/* log(1 + m) - m + m*m/2 for 1 + m from sqrt(1/2) to sqrt(2). */
MP_INLINE double mp_f64_log_rest(double m) {
    double s = m / (2.0 + m), z = s * s, w = z * z;
    double a = mp_f64_fma(w, mp_f64_fma(w, 0x1.39a09d078c69fp-3, 0x1.c71c51d8e78afp-3), 0x1.999999997fa04p-2);
    double b = mp_f64_fma(w, 0x1.2f112df3e5244p-3, 0x1.7466496cb03dep-3);
    double r = mp_f64_fma(w, mp_f64_fma(w, b, 0x1.2492494229359p-2), 0x1.5555555555593p-1);
    return s * (0.5 * m * m + mp_f64_fma(z, r, w * a));
}
MP_INLINE float mp_f32_log_rest(float m) {
    float p = mp_f32_fma(-0x1.45565cp-4f, m, 0x1.02e3f8p-3f);
    p = mp_f32_fma(p, m, -0x1.0a1f0cp-3f);
    p = mp_f32_fma(p, m, 0x1.2311dap-3f);
    p = mp_f32_fma(p, m, -0x1.54d09ep-3f);
    p = mp_f32_fma(p, m, 0x1.999f48p-3f);
    p = mp_f32_fma(p, m, -0x1.0000cep-2f);
    p = mp_f32_fma(p, m, 0x1.555554p-2f);
    return p * m * (m * m);
}

/* atan(t)/t - 1 over t*t, for |t| <= tan(pi/8), and asin(t)/t - 1 over t*t, for |t| <= 1/2, of z = t*t. */
MP_INLINE double mp_f64_atan_rest(double z) {
    double p = mp_f64_fma(-0x1.3abfe6d18f3b4p-6, z, 0x1.41a3647f6ffbbp-5);
    p = mp_f64_fma(p, z, -0x1.a0b2bbad2f784p-5);
    p = mp_f64_fma(p, z, 0x1.dfebbc3e01bdap-5);
    p = mp_f64_fma(p, z, -0x1.10fad4189eac3p-4);
    p = mp_f64_fma(p, z, 0x1.3b126ab907016p-4);
    p = mp_f64_fma(p, z, -0x1.745d0b8f05795p-4);
    p = mp_f64_fma(p, z, 0x1.c71c71886a3cep-4);
    p = mp_f64_fma(p, z, -0x1.249249243cfddp-3);
    p = mp_f64_fma(p, z, 0x1.9999999999423p-3);
    return mp_f64_fma(p, z, -0x1.5555555555555p-2);
}
MP_INLINE float mp_f32_atan_rest(float z) {
    float p = mp_f32_fma(-0x1.07d3cap-4f, z, 0x1.b7e37p-4f);
    p = mp_f32_fma(p, z, -0x1.241d38p-3f);
    p = mp_f32_fma(p, z, 0x1.99970ap-3f);
    return mp_f32_fma(p, z, -0x1.555554p-2f);
}
MP_INLINE double mp_f64_asin_rest(double z) {
    double p = mp_f64_fma(0x1.dabba2b825275p-6, z, -0x1.f170025cbcac5p-7);
    p = mp_f64_fma(p, z, 0x1.20a9f2e3129dp-6);
    p = mp_f64_fma(p, z, 0x1.60375605ed99ep-8);
    p = mp_f64_fma(p, z, 0x1.52eb7199c6db3p-7);
    p = mp_f64_fma(p, z, 0x1.780afddec0e07p-7);
    p = mp_f64_fma(p, z, 0x1.c9d1fdde36367p-7);
    p = mp_f64_fma(p, z, 0x1.1c4d1a7281b43p-6);
    p = mp_f64_fma(p, z, 0x1.6e8bb30e1ed28p-6);
    p = mp_f64_fma(p, z, 0x1.f1c71c1478c97p-6);
    p = mp_f64_fma(p, z, 0x1.6db6db6e442c2p-5);
    p = mp_f64_fma(p, z, 0x1.3333333332dc8p-4);
    return mp_f64_fma(p, z, 0x1.5555555555556p-3);
}
MP_INLINE float mp_f32_asin_rest(float z) {
    float p = mp_f32_fma(0x1.1a3058p-5f, z, 0x1.10a158p-6f);
    p = mp_f32_fma(p, z, 0x1.ff9638p-6f);
    p = mp_f32_fma(p, z, 0x1.6d4028p-5f);
    p = mp_f32_fma(p, z, 0x1.3334c8p-4f);
    return mp_f32_fma(p, z, 0x1.555554p-3f);
}

/* m**(-1/3) for m from sqrt(1/2) to sqrt(2), 18 and 12 bits of it. */
MP_INLINE double mp_f64_reciprocal_cbrt(double m) {
    double p = mp_f64_fma(-0x1.ba8e786f94b6p-4, m, 0x1.66bb1094d3eebp-1);
    p = mp_f64_fma(p, m, -0x1.e5dfb2fc295a3p0);
    p = mp_f64_fma(p, m, 0x1.656108366bf5ep1);
    p = mp_f64_fma(p, m, -0x1.3e2f9cd1b2016p1);
    return mp_f64_fma(p, m, 0x1.ffc87bf9a918cp0);
}
MP_INLINE float mp_f32_reciprocal_cbrt(float m) {
    float p = mp_f32_fma(-0x1.44a81ep-3f, m, 0x1.6d34cep-1f);
    p = mp_f32_fma(p, m, -0x1.4922c6p0f);
    return mp_f32_fma(p, m, 0x1.bb0eep0f);
}

#define FLOAT double
#define NAME(function) f64_##function
#define OWN(function) mp_f64_##function
#define BUILTIN(function) __builtin_##function
#define BITS uint64_t
#define ONLY(f64, f32) f64
#include "maths_of.h"
#undef FLOAT
#undef NAME
#undef OWN
#undef BUILTIN
#undef BITS
#undef ONLY
#define FLOAT float
#define NAME(function) f32_##function
#define OWN(function) mp_f32_##function
#define BUILTIN(function) __builtin_##function##f
#define BITS uint32_t
#define ONLY(f64, f32) f32
#include "maths_of.h"
#undef FLOAT
#undef NAME
#undef OWN
#undef BUILTIN
#undef BITS
#undef ONLY

#ifdef MP_OWN_VECTORS
#include "circular.h"
#endif
#endif
#endif
