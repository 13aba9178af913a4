// CUDA's mathematical functions: those that glibc lacks, and the overloads that CUDA adds at global scope.
//
// In and out: float, double, integers. Example: `rsqrt(4.0)` is 0.5, `min(NAN, 1.0f)` is 1 as on a GPU. What glibc
// has (exp, erf, lgamma, j0 ...) comes from <math.h>. Results agree with a GPU's to a few units in the last place.
#pragma once

// ---- Functions that the library defines (newer C libraries have some of them, with the same meaning) --------------

extern "C" {
double rsqrt(double) noexcept;
double rcbrt(double) noexcept;
double sinpi(double) noexcept;
double cospi(double) noexcept;
double erfinv(double) noexcept;
double erfcinv(double) noexcept;
double erfcx(double) noexcept;
double normcdf(double) noexcept;
double normcdfinv(double) noexcept;
double cyl_bessel_i0(double) noexcept;
double cyl_bessel_i1(double) noexcept;
float rsqrtf(float) noexcept;
float sinpif(float) noexcept;
float cospif(float) noexcept;
}

static inline float rcbrtf(float x) { return (float)rcbrt((double)x); }
static inline float erfinvf(float x) { return (float)erfinv((double)x); }
static inline float erfcinvf(float x) { return (float)erfcinv((double)x); }
static inline float erfcxf(float x) { return (float)erfcx((double)x); }
static inline float normcdff(float x) { return (float)normcdf((double)x); }
static inline float normcdfinvf(float x) { return (float)normcdfinv((double)x); }
static inline float cyl_bessel_i0f(float x) { return (float)cyl_bessel_i0((double)x); }
static inline float cyl_bessel_i1f(float x) { return (float)cyl_bessel_i1((double)x); }

static inline void sincospi(double x, double* sine, double* cosine) { *sine = sinpi(x), *cosine = cospi(x); }
static inline void sincospif(float x, float* sine, float* cosine) { *sine = sinpif(x), *cosine = cospif(x); }
static inline double rhypot(double x, double y) { return 1 / hypot(x, y); }
static inline double norm3d(double x, double y, double z) { return hypot(hypot(x, y), z); }

// ---- float overloads of double's names, which <math.h> has for its own functions only -----------------------------

static inline float rsqrt(float x) { return rsqrtf(x); }
static inline float rcbrt(float x) { return rcbrtf(x); }
static inline float sinpi(float x) { return sinpif(x); }
static inline float cospi(float x) { return cospif(x); }
static inline float erfinv(float x) { return erfinvf(x); }
static inline float erfcinv(float x) { return erfcinvf(x); }
static inline float erfcx(float x) { return erfcxf(x); }
static inline float normcdf(float x) { return normcdff(x); }
static inline float normcdfinv(float x) { return normcdfinvf(x); }
static inline float exp10(float x) { return exp10f(x); }
static inline void sincos(float x, float* sine, float* cosine) { sincosf(x, sine, cosine); }

// ---- min and max: of two kinds of number too, and passing over NaN ------------------------------------------------

#define CUEMU_LEAST(T, A, B)                                     \
    static inline T min(A a, B b) { return (T)a < (T)b ? (T)a : (T)b; } \
    static inline T max(A a, B b) { return (T)a < (T)b ? (T)b : (T)a; }
CUEMU_LEAST(int, int, int)
CUEMU_LEAST(unsigned, unsigned, unsigned)
CUEMU_LEAST(unsigned, int, unsigned)
CUEMU_LEAST(unsigned, unsigned, int)
CUEMU_LEAST(long, long, long)
CUEMU_LEAST(unsigned long, unsigned long, unsigned long)
CUEMU_LEAST(long long, long long, long long)
CUEMU_LEAST(unsigned long long, unsigned long long, unsigned long long)
CUEMU_LEAST(unsigned long long, long long, unsigned long long)
CUEMU_LEAST(unsigned long long, unsigned long long, long long)
#undef CUEMU_LEAST

static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }
static inline double min(float a, double b) { return fmin(a, b); }
static inline double max(float a, double b) { return fmax(a, b); }
static inline double min(double a, float b) { return fmin(a, b); }
static inline double max(double a, float b) { return fmax(a, b); }

// ---- Fast and exactly rounded intrinsics --------------------------------------------------------------------------
// The fast ones are as exact here as the others. glibc declares some of these names itself: hence macros.

#define __expf(x) expf(x)
#define __exp10f(x) exp10f(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __log10f(x) log10f(x)
#define __powf(x, y) powf(x, y)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __tanf(x) tanf(x)
#define __sincosf(x, sine, cosine) sincosf(x, sine, cosine)
#define __saturatef(x) fminf(fmaxf(x, 0.0f), 1.0f)

static inline float __fdividef(float a, float b) { return a / b; }
static inline float fdividef(float a, float b) { return a / b; }
static inline float __frsqrt_rn(float x) { return (float)(1 / sqrt((double)x)); }

#define CUEMU_ROUNDED(T, prefix, suffix)                                                     \
    static inline T prefix##add_rn(T a, T b) { return a + b; }                               \
    static inline T prefix##sub_rn(T a, T b) { return a - b; }                               \
    static inline T prefix##mul_rn(T a, T b) { return a * b; }                               \
    static inline T prefix##div_rn(T a, T b) { return a / b; }                               \
    static inline T prefix##rcp_rn(T a) { return 1 / a; }                                    \
    static inline T prefix##sqrt_rn(T a) { return sqrt##suffix(a); }
CUEMU_ROUNDED(float, __f, f)
CUEMU_ROUNDED(double, __d, )
#undef CUEMU_ROUNDED
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
