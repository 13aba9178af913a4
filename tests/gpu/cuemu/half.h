// Numbers of 16 bits: `__half`, and `__nv_bfloat16`, which is stored and converted but not reckoned with.
//
// In: floats, or a half's 16 bits. Out: the nearest number of 16 bits, of two equally near the even one. Example:
// `__half h = __float2half(0.1f); float f = __half2float(h);`. Every operation is done in float and rounded once,
// which gives the bits that a GPU gives.
#pragma once

extern "C" uint16_t cuemu_half_of_float(float x);
extern "C" uint16_t cuemu_half_of_double(double x);
extern "C" float cuemu_float_of_half(uint16_t bits);

// ---- The type -----------------------------------------------------------------------------------------------------

struct __half {
    uint16_t bits;

    __half() = default;
    __half(float x) : bits(cuemu_half_of_float(x)) {}
    __half(double x) : bits(cuemu_half_of_double(x)) {}
    __half(int x) : bits(cuemu_half_of_double(x)) {}
    __half(unsigned x) : bits(cuemu_half_of_double(x)) {}
    __half(long long x) : bits(cuemu_half_of_double((double)x)) {}
    __half(unsigned long long x) : bits(cuemu_half_of_double((double)x)) {}
    operator float() const { return cuemu_float_of_half(bits); }
};
using half = __half;

static inline float __half2float(__half x) { return (float)x; }
static inline __half __float2half(float x) { return __half(x); }
static inline __half __float2half_rn(float x) { return __half(x); }
static inline __half __double2half(double x) { return __half(x); }
static inline __half __ushort_as_half(unsigned short bits) {
    __half same;
    same.bits = bits;
    return same;
}
static inline unsigned short __half_as_ushort(__half x) { return x.bits; }
static inline __half __short_as_half(short bits) { return __ushort_as_half((unsigned short)bits); }
static inline short __half_as_short(__half x) { return (short)x.bits; }

// ---- Arithmetic ---------------------------------------------------------------------------------------------------

#define CUEMU_HALF_OPERATOR(op, name)                                                            \
    static inline __half operator op(__half a, __half b) { return __half((float)a op (float)b); } \
    static inline __half& operator op##=(__half& a, __half b) { return a = a op b; }              \
    static inline __half name(__half a, __half b) { return a op b; }
CUEMU_HALF_OPERATOR(+, __hadd)
CUEMU_HALF_OPERATOR(-, __hsub)
CUEMU_HALF_OPERATOR(*, __hmul)
CUEMU_HALF_OPERATOR(/, __hdiv)
#undef CUEMU_HALF_OPERATOR

#define CUEMU_HALF_COMPARISON(op, name)                                                      \
    static inline bool operator op(__half a, __half b) { return (float)a op (float)b; }      \
    static inline bool name(__half a, __half b) { return a op b; }
CUEMU_HALF_COMPARISON(==, __heq)
CUEMU_HALF_COMPARISON(!=, __hne)
CUEMU_HALF_COMPARISON(<, __hlt)
CUEMU_HALF_COMPARISON(<=, __hle)
CUEMU_HALF_COMPARISON(>, __hgt)
CUEMU_HALF_COMPARISON(>=, __hge)
#undef CUEMU_HALF_COMPARISON

static inline __half operator-(__half a) { return __ushort_as_half(a.bits ^ 0x8000); }
static inline __half operator+(__half a) { return a; }
static inline __half __hneg(__half a) { return -a; }
static inline __half __habs(__half a) { return __ushort_as_half(a.bits & 0x7fff); }
static inline bool __hisnan(__half a) { return (a.bits & 0x7fff) > 0x7c00; }
static inline int __hisinf(__half a) { return a.bits == 0x7c00 ? 1 : a.bits == 0xfc00 ? -1 : 0; }
static inline __half __hmin(__half a, __half b) { return __half(fminf(a, b)); }
static inline __half __hmax(__half a, __half b) { return __half(fmaxf(a, b)); }
static inline __half __hfma(__half a, __half b, __half c) { return __half((double)(float)a * (float)b + (float)c); }

#define CUEMU_HALF_FUNCTION(name, function) \
    static inline __half name(__half x) { return __half(function((float)x)); }
CUEMU_HALF_FUNCTION(hexp, expf)
CUEMU_HALF_FUNCTION(hlog, logf)
CUEMU_HALF_FUNCTION(hsqrt, sqrtf)
CUEMU_HALF_FUNCTION(hrsqrt, rsqrtf)
CUEMU_HALF_FUNCTION(hsin, sinf)
CUEMU_HALF_FUNCTION(hcos, cosf)
CUEMU_HALF_FUNCTION(hfloor, floorf)
CUEMU_HALF_FUNCTION(hceil, ceilf)
CUEMU_HALF_FUNCTION(htrunc, truncf)
CUEMU_HALF_FUNCTION(hrint, rintf)
#undef CUEMU_HALF_FUNCTION

// ---- bfloat16 -----------------------------------------------------------------------------------------------------

struct __nv_bfloat16 {
    uint16_t bits;
};

static inline float __bfloat162float(__nv_bfloat16 x) { return __uint_as_float((unsigned)x.bits << 16); }
static inline __nv_bfloat16 __float2bfloat16(float x) {
    unsigned bits = __float_as_uint(x);
    if (x != x) return {0x7fff};
    return {(uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
static inline __nv_bfloat16 __float2bfloat16_rn(float x) { return __float2bfloat16(x); }
