/* sin, cos and tan of several numbers at once, where gcc would look for vector functions and the C library has none:
 * MP_VECTORS_f64(sin) defines those of f64_sin, under the names that gcc calls. One number alone is the C library's; so
 * is one that is so far from 0 that taking multiples of pi/2 from it needs hundreds of bits.
 *
 * These multiples are taken from x in parts (Cody and Waite, Software Manual for the Elementary Functions, 1980): the
 * first difference is exact, for x and the product are multiples of its last bit. */
#ifndef METAPHRASE_CIRCULAR_H
#define METAPHRASE_CIRCULAR_H

/* x - n pi/2: the value is r + low. */
#define MP_F64_LIMIT 0x1p46
MP_INLINE double mp_f64_reduced(double x, double n, double* low) {
    double first = mp_f64_fma(n, -0x1.921fb54442d18p0, x), product = n * 0x1.1a62633145c07p-54, r = first - product;
    double rest = mp_f64_fma(n, -0x1.f1976b7ed8fbcp-110, mp_f64_fma(n, 0x1.1a62633145c07p-54, -product));
    *low = ((first - r) - product) - rest;
    return r;
}
#define MP_F32_LIMIT 0x1p16f
MP_INLINE float mp_f32_reduced(float x, float n, float* low) {
    float first = mp_f32_fma(n, -0x1.921fb6p0f, x), product = n * -0x1.777a5cp-25f, r = first - product;
    float rest = mp_f32_fma(n, -0x1.ee59dap-50f, mp_f32_fma(n, -0x1.777a5cp-25f, -product));
    *low = ((first - r) - product) - rest;
    return r;
}

/* sin(r + low) and cos(r + low) for |r| <= pi/4. */
MP_INLINE double mp_f64_near_sin(double r, double low) {
    double z = r * r, p = mp_f64_fma(0x1.5e07d34e91814p-33, z, -0x1.ae6006206bf44p-26);
    p = mp_f64_fma(p, z, 0x1.71de379867565p-19);
    p = mp_f64_fma(p, z, -0x1.a01a019e8e789p-13);
    p = mp_f64_fma(p, z, 0x1.1111111110c3fp-7);
    p = mp_f64_fma(p, z, -0x1.5555555555555p-3);
    return r + mp_f64_fma(r * z, p, low);
}
MP_INLINE double mp_f64_near_cos(double r, double low) {
    double z = r * r, p = mp_f64_fma(-0x1.906bec8d20654p-37, z, 0x1.1eeb4d832f173p-29);
    p = mp_f64_fma(p, z, -0x1.27e4f9f95b97bp-22);
    p = mp_f64_fma(p, z, 0x1.a01a019f31619p-16);
    p = mp_f64_fma(p, z, -0x1.6c16c16c168b2p-10);
    p = mp_f64_fma(p, z, 0x1.5555555555555p-5);
    double half = 0.5 * z, w = 1.0 - half;
    return w + (((1.0 - w) - half) + mp_f64_fma(z * z, p, -r * low));
}
MP_INLINE float mp_f32_near_sin(float r, float low) {
    float z = r * r, p = mp_f32_fma(-0x1.9aa65ap-13f, z, 0x1.110bdp-7f);
    p = mp_f32_fma(p, z, -0x1.555552p-3f);
    return r + mp_f32_fma(r * z, p, low);
}
MP_INLINE float mp_f32_near_cos(float r, float low) {
    float z = r * r, p = mp_f32_fma(0x1.9bbd44p-16f, z, -0x1.6c128ep-10f);
    p = mp_f32_fma(p, z, 0x1.555554p-5f);
    float half = 0.5f * z, w = 1.0f - half;
    return w + (((1.0f - w) - half) + mp_f32_fma(z * z, p, -r * low));
}

/* sin, and with a turn cos: sin(x + turn pi/2). */
#define MP_SCALARS(FLOAT, TYPE, BITS, MAGIC, TWO_OVER_PI)                                                   \
    MP_INLINE FLOAT mp_##TYPE##_turned(FLOAT x, BITS turn) {                                                \
        FLOAT t = mp_##TYPE##_fma(x, TWO_OVER_PI, MAGIC), low, r = mp_##TYPE##_reduced(x, t - MAGIC, &low); \
        BITS quarter = mp_##TYPE##_bits(t) + turn;                                                          \
        FLOAT y = quarter & 1 ? mp_##TYPE##_near_cos(r, low) : mp_##TYPE##_near_sin(r, low);                \
        return mp_##TYPE##_of_bits(mp_##TYPE##_bits(y) ^ (quarter & 2) << (8 * sizeof(BITS) - 2));          \
    }                                                                                                       \
    MP_INLINE FLOAT mp_##TYPE##_sin(FLOAT x) { return x == 0 ? x : mp_##TYPE##_turned(x, 0); }              \
    MP_INLINE FLOAT mp_##TYPE##_cos(FLOAT x) { return mp_##TYPE##_turned(x, 1); }                           \
    MP_INLINE FLOAT mp_##TYPE##_tan(FLOAT x) {                                                              \
        FLOAT t = mp_##TYPE##_fma(x, TWO_OVER_PI, MAGIC), low, r = mp_##TYPE##_reduced(x, t - MAGIC, &low); \
        FLOAT s = mp_##TYPE##_near_sin(r, low), c = mp_##TYPE##_near_cos(r, low);                           \
        int odd = mp_##TYPE##_bits(t) & 1;                                                                  \
        return x == 0 ? x : (odd ? -c : s) / (odd ? s : c);                                                 \
    }
MP_SCALARS(double, f64, uint64_t, 0x1.8p52, 0x1.45f306dc9c883p-1)
MP_SCALARS(float, f32, uint32_t, 0x1.8p23f, 0x1.45f306p-1f)

/* The vector function of COUNT numbers. What is far goes to the C library, one by one. */
#define MP_VECTOR(ABI, CALLED, COUNT, FLOAT, TYPE, LIMIT, function, name)                                     \
    typedef FLOAT mp_##TYPE##_##function##_##COUNT __attribute__((vector_size(COUNT * sizeof(FLOAT))));       \
    static __attribute__((used, noinline)) CALLED mp_##TYPE##_##function##_##COUNT _ZGV##ABI##N##COUNT##v_##name(\
        mp_##TYPE##_##function##_##COUNT x) {                                                                 \
        FLOAT y[COUNT];                                                                                       \
        int far = 0;                                                                                          \
        __builtin_memcpy(y, &x, sizeof x);                                                                    \
        for (int k = 0; k < COUNT; k++) far |= y[k] > LIMIT || y[k] < -LIMIT;                                 \
        for (int k = 0; k < COUNT; k++) y[k] = mp_##TYPE##_##function(y[k]);                                  \
        for (int k = 0; __builtin_expect(far, 0) && k < COUNT; k++)                                           \
            if (x[k] > LIMIT || x[k] < -LIMIT) y[k] = TYPE##_##function(x[k]);                                \
        __builtin_memcpy(&x, y, sizeof x);                                                                    \
        return x;                                                                                             \
    }

#if defined(__aarch64__)
#define MP_VECTORS_8(...) MP_VECTOR(n, __attribute__((aarch64_vector_pcs)), __VA_ARGS__)
#define MP_VECTORS_16(...) MP_VECTOR(n, __attribute__((aarch64_vector_pcs)), __VA_ARGS__)
#define MP_VECTORS_32(...)
#define MP_VECTORS_64(...)
#else
#define MP_VECTORS_8(...)
#define MP_VECTORS_16(...) MP_VECTOR(b, , __VA_ARGS__)
#define MP_VECTORS_32(...) MP_VECTOR(d, , __VA_ARGS__)
#ifdef __AVX512F__
#define MP_VECTORS_64(...) MP_VECTOR(e, , __VA_ARGS__)
#else
#define MP_VECTORS_64(...)
#endif
#endif
#define MP_VECTORS_f64(function)                                     \
    MP_VECTORS_16(2, double, f64, MP_F64_LIMIT, function, function)   \
    MP_VECTORS_32(4, double, f64, MP_F64_LIMIT, function, function)   \
    MP_VECTORS_64(8, double, f64, MP_F64_LIMIT, function, function)
#define MP_VECTORS_f32(function)                                     \
    MP_VECTORS_8(2, float, f32, MP_F32_LIMIT, function, function##f)  \
    MP_VECTORS_16(4, float, f32, MP_F32_LIMIT, function, function##f) \
    MP_VECTORS_32(8, float, f32, MP_F32_LIMIT, function, function##f) \
    MP_VECTORS_64(16, float, f32, MP_F32_LIMIT, function, function##f)
#endif
