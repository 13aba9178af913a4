// Operations on bits, reads by way of the read-only cache, and numbers taken for others with the same bits.
//
// In and out: scalars. Example: `__popc(0xffu)` is 8, `__double_as_longlong(1.0)` is 0x3ff0000000000000.
#pragma once

// ---- The same bits as another type --------------------------------------------------------------------------------

#define CUEMU_AS(name, From, To)            \
    static inline To name(From value) {     \
        To same;                            \
        memcpy(&same, &value, sizeof same); \
        return same;                        \
    }
CUEMU_AS(__float_as_int, float, int)
CUEMU_AS(__int_as_float, int, float)
CUEMU_AS(__float_as_uint, float, unsigned)
CUEMU_AS(__uint_as_float, unsigned, float)
CUEMU_AS(__double_as_longlong, double, long long)
CUEMU_AS(__longlong_as_double, long long, double)
#undef CUEMU_AS

static inline int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
static inline int __double2loint(double x) { return (int)__double_as_longlong(x); }
static inline double __hiloint2double(int high, int low) {
    return __longlong_as_double((long long)((uint64_t)(unsigned)high << 32 | (unsigned)low));
}

// ---- Counting bits, products' upper halves ------------------------------------------------------------------------

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }

static inline unsigned __brev(unsigned x) {
    unsigned reversed = 0;
    for (int i = 0; i < 32; i++) reversed |= (x >> i & 1) << (31 - i);
    return reversed;
}
static inline unsigned long long __brevll(unsigned long long x) {
    return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}

static inline int __mulhi(int a, int b) { return (int)(((long long)a * b) >> 32); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a * b) >> 32); }
static inline long long __mul64hi(long long a, long long b) { return (long long)(((__int128)a * b) >> 64); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
    return (unsigned)((((uint64_t)high << 32 | low) << (by & 31)) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
    return (unsigned)(((uint64_t)high << 32 | low) >> (by & 31));
}

// ---- Reads and writes with a hint to the cache: plain ones here ---------------------------------------------------

template <class T> static inline T __ldg(const T* place) { return *place; }
template <class T> static inline T __ldcg(const T* place) { return *place; }
template <class T> static inline T __ldcs(const T* place) { return *place; }
template <class T> static inline void __stcg(T* place, T value) { *place = value; }
template <class T> static inline void __stcs(T* place, T value) { *place = value; }

// ---- Conversions whose rounding the name says ---------------------------------------------------------------------
// A GPU saturates where a float fits no integer; NaN becomes 0 (from float to int) or the least integer (the others).

template <class To, class From> static inline To cuemu_saturated(From x, To of_nan) {
    if (x != x) return of_nan;
    if (x <= (From)std::numeric_limits<To>::min()) return std::numeric_limits<To>::min();
    if (x >= (From)std::numeric_limits<To>::max()) return std::numeric_limits<To>::max();
    return (To)x;
}

static inline int __double2int_rn(double x) { return cuemu_saturated<int>(rint(x), (int)INT_MIN); }
static inline int __double2int_rz(double x) { return cuemu_saturated<int>(trunc(x), (int)INT_MIN); }
static inline int __float2int_rn(float x) { return cuemu_saturated<int>(rintf(x), 0); }
static inline int __float2int_rz(float x) { return cuemu_saturated<int>(truncf(x), 0); }
static inline long long __double2ll_rn(double x) { return cuemu_saturated<long long>(rint(x), LLONG_MIN); }
static inline long long __double2ll_rz(double x) { return cuemu_saturated<long long>(trunc(x), LLONG_MIN); }
static inline long long __float2ll_rz(float x) { return cuemu_saturated<long long>(truncf(x), LLONG_MIN); }
static inline float __double2float_rn(double x) { return (float)x; }
static inline double __int2double_rn(int x) { return x; }
static inline double __ll2double_rn(long long x) { return (double)x; }
static inline float __int2float_rn(int x) { return (float)x; }
static inline float __ll2float_rn(long long x) { return (float)x; }
