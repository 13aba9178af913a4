/* The functions of maths.h, of one type: FLOAT, which f64_ and f32_ are put before. ONLY(a, b) is a of f64, b of f32. */

#define MANTISSA ONLY(52, 23)
#define ONE ((FLOAT)1)
#define HALF ((FLOAT)0.5)
#define MAGIC ONLY(0x1.8p52, 0x1.8p23f) /* added, it rounds to an integer, which the lowest bits then hold */
#define LOG2_E ONLY(0x1.71547652b82fep+0, 0x1.715476p+0f)
#define LOG_2 ONLY(0x1.62e42fefa4p-1, 0x1.62e4p-1f) /* the first bits: products with exponents are exact */
#define LOG_2_REST ONLY(-0x1.8432a1b0e2634p-43, 0x1.7f7d1cp-20f)
#define INFINITE BUILTIN(inf)()

MP_INLINE BITS OWN(bits)(FLOAT x) {
    BITS bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}
MP_INLINE FLOAT OWN(of_bits)(BITS bits) {
    FLOAT x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2**n, of MAGIC + n. */
MP_INLINE FLOAT OWN(power)(FLOAT t) { return OWN(of_bits)((OWN(bits)(t) << MANTISSA) + OWN(bits)(ONE)); }

/* exp(x) - 1 = 2**n (p + 1) - 1: p, and MAGIC + n. */
MP_INLINE FLOAT OWN(expm1_parts)(FLOAT x, FLOAT* t) {
    *t = OWN(fma)(x, LOG2_E, MAGIC);
    FLOAT n = *t - MAGIC, high = OWN(fma)(n, -LOG_2, x), r = OWN(fma)(n, -LOG_2_REST, high);
    return OWN(small_expm1)(r, OWN(fma)(n, -LOG_2_REST, high - r));
}

/* (p + 1) 2**n, of MAGIC + n: in two steps where 2**n is no normal number. */
MP_INLINE FLOAT OWN(scaled)(FLOAT p, FLOAT t) {
    FLOAT n = t - MAGIC, bound = ONLY(1000, 120);
    FLOAT shift = n > bound ? (FLOAT)64 : n < -bound ? (FLOAT)-64 : (FLOAT)0;
    FLOAT scale = n > bound ? (FLOAT)0x1p64 : n < -bound ? (FLOAT)0x1p-64 : ONE;
    return (p + ONE) * OWN(power)(t - shift) * scale;
}

MP_INLINE FLOAT NAME(exp)(FLOAT x) {
    FLOAT t, p = OWN(expm1_parts)(x, &t), y = OWN(scaled)(p, t);
    y = x > ONLY(709.79, 89.0f) ? INFINITE : y;
    return x < ONLY(-745.14, -104.0f) ? (FLOAT)0 : y;
}

MP_INLINE FLOAT NAME(exp2)(FLOAT x) {
    FLOAT t = x + MAGIC, r = (x - (t - MAGIC)) * ONLY(0x1.62e42fefa39efp-1, 0x1.62e43p-1f);
    FLOAT y = OWN(scaled)(OWN(small_expm1)(r, 0), t);
    y = x >= ONLY(1024, 128) ? INFINITE : y;
    return x < ONLY(-1080, -160) ? (FLOAT)0 : y;
}

/* A half of exp(x) - 1, x up to a little more than the logarithm of the largest number. */
MP_INLINE FLOAT OWN(half_expm1)(FLOAT x) {
    FLOAT t, p = OWN(expm1_parts)(x, &t), s = OWN(power)(t - ONE);
    return OWN(fma)(p, s, s - HALF);
}

MP_INLINE FLOAT NAME(expm1)(FLOAT x) {
    FLOAT y = 2 * OWN(half_expm1)(x < -50 ? (FLOAT)-50 : x);
    return BUILTIN(copysign)(x > ONLY(709.79, 89.0f) ? INFINITE : y, x);
}

MP_INLINE FLOAT NAME(sinh)(FLOAT x) {
    FLOAT a = BUILTIN(fabs)(x), t, p = OWN(expm1_parts)(a, &t), s = OWN(power)(t - 2);
    FLOAT q = OWN(fma)(p, s, s - (FLOAT)0.25);
    FLOAT y = 2 * (q + q / (4 * q + ONE));
    return BUILTIN(copysign)(a > ONLY(710.476, 89.416f) ? INFINITE : y, x);
}

MP_INLINE FLOAT NAME(cosh)(FLOAT x) {
    FLOAT a = BUILTIN(fabs)(x), t, p = OWN(expm1_parts)(a, &t);
    FLOAT q = (p + ONE) * OWN(power)(t - 2);
    FLOAT y = 2 * (q + (FLOAT)0.0625 / q);
    return a > ONLY(710.476, 89.416f) ? INFINITE : y;
}

/* e/(e + 2) of e = exp(2x) - 1; the rounding errors of the sum and the quotient are taken back. */
MP_INLINE FLOAT NAME(tanh)(FLOAT x) {
    FLOAT a = BUILTIN(fabs)(x);
    FLOAT e = 2 * OWN(half_expm1)(2 * (a > 20 ? (FLOAT)20 : a));
    FLOAT d = e + 2, y = ONE / d, q = e * y;
    q = OWN(fma)(y, OWN(fma)(-q, d, e) - q * (e - (d - 2)), q);
    return BUILTIN(copysign)(q, x);
}

/* The parts of x > 0: 2**e (1 + m), 1 + m from sqrt(1/2) to sqrt(2). `bias` is taken from the exponent. */
MP_INLINE FLOAT OWN(exponent)(BITS i, FLOAT bias) {
    FLOAT large = ONLY(0x1p52, 0x1p23f);
    return OWN(of_bits)(OWN(bits)(large) | (i >> MANTISSA)) - (large + ONLY(1023, 127) + bias);
}
#define ROOT_OF_HALF ONLY(0x3fe6a09e667f3bcdu, 0x3f3504f3u)
#define SHIFTED(x) (OWN(bits)(x) + (OWN(bits)(ONE) - ROOT_OF_HALF))
#define MANTISSA_OF(i) OWN(of_bits)(((i) & (((BITS)1 << MANTISSA) - 1)) + ROOT_OF_HALF)

/* log(2**e (1 + m)), and where x is no positive number what it is there. */
MP_INLINE FLOAT OWN(log_of_parts)(FLOAT m, FLOAT e) {
    FLOAT y = OWN(log_rest)(m);
    y = OWN(fma)(-HALF * m, m, OWN(fma)(e, LOG_2_REST, y));
    return OWN(fma)(e, LOG_2, m + y);
}
MP_INLINE FLOAT OWN(of_positive)(FLOAT x, FLOAT y) {
    y = x < INFINITE ? y : x;
    return x > 0 ? y : x == 0 ? -INFINITE : BUILTIN(nan)("");
}

MP_INLINE FLOAT NAME(log)(FLOAT x) {
    int tiny = x < ONLY(0x1p-1022, 0x1p-126f);
    BITS i = SHIFTED(tiny ? x * ONLY(0x1p54, 0x1p24f) : x);
    FLOAT e = OWN(exponent)(i, tiny ? ONLY(54, 24) : 0);
    return OWN(of_positive)(x, OWN(log_of_parts)(MANTISSA_OF(i) - ONE, e));
}

/* log1p: what 1 + x loses is added to the mantissa. */
MP_INLINE FLOAT NAME(log1p)(FLOAT x) {
    FLOAT u = ONE + x, lost = (x - (u - ONE)) + (ONE - (u - (u - ONE)));
    BITS i = SHIFTED(u);
    FLOAT scale = OWN(of_bits)((BITS)(ONLY(2047, 255) - (i >> MANTISSA)) << MANTISSA);
    FLOAT m = OWN(fma)(HALF * lost, scale, MANTISSA_OF(i) - ONE);
    FLOAT y = OWN(of_positive)(u, OWN(log_of_parts)(m, OWN(exponent)(i, 0)));
    return BUILTIN(copysign)(y, x);
}

/* log(x) in another base, of which 1/log(base) and log_base(2) are given in two parts. */
MP_INLINE FLOAT OWN(log_in)(FLOAT x, FLOAT scale, FLOAT scale_rest, FLOAT two, FLOAT two_rest) {
    int tiny = x < ONLY(0x1p-1022, 0x1p-126f);
    BITS i = SHIFTED(tiny ? x * ONLY(0x1p54, 0x1p24f) : x);
    FLOAT e = OWN(exponent)(i, tiny ? ONLY(54, 24) : 0), m = MANTISSA_OF(i) - ONE;
    FLOAT square = HALF * m * m, high = m - square, low = (m - high) - square + OWN(log_rest)(m);
    FLOAT p = high * scale, q = e * two, sum = q + p;
    FLOAT rest = ((q - sum) + p) + OWN(fma)(high, scale, -p);
    rest = OWN(fma)(high, scale_rest, OWN(fma)(low, scale, two_rest == 0 ? rest : OWN(fma)(e, two_rest, rest)));
    return OWN(of_positive)(x, sum + rest);
}
MP_INLINE FLOAT NAME(log2)(FLOAT x) {
    return OWN(log_in)(x, LOG2_E, ONLY(0x1.777d0ffda0d24p-56, 0x1.4ae0cp-26f), 1, 0);
}
MP_INLINE FLOAT NAME(log10)(FLOAT x) {
    return OWN(log_in)(x, ONLY(0x1.bcb7b1526e50ep-2, 0x1.bcb7b2p-2f), ONLY(0x1.95355baaafad3p-57, -0x1.5b235ep-27f),
                       ONLY(0x1.34413509f8p-2, 0x1.344p-2f), ONLY(-0x1.80433b83b532ap-44, 0x1.3509f8p-18f));
}

#define PI_4 ONLY(0x1.921fb54442d18p-1, 0x1.921fb6p-1f)
#define PI_4_REST ONLY(0x1.1a62633145c07p-55, -0x1.777a5cp-26f)

/* atan(a/b) of a, b >= 0, not both 0 or infinite. */
MP_INLINE FLOAT OWN(angle)(FLOAT a, FLOAT b) {
    int steep = a > b * ONLY(0x1.3504f333f9de6p+1, 0x1.3504f4p+1f), middle = a > b * ONLY(0x1.a827999fcef32p-2, 0x1.a8279ap-2f);
    FLOAT quarters = steep ? (FLOAT)2 : middle ? ONE : (FLOAT)0;
    FLOAT t = (steep ? -b : middle ? a - b : a) / (steep ? a : middle ? a + b : b), z = t * t;
    return OWN(fma)(quarters, PI_4, OWN(fma)(t * z, OWN(atan_rest)(z), OWN(fma)(quarters, PI_4_REST, t)));
}

MP_INLINE FLOAT NAME(arctan)(FLOAT x) { return BUILTIN(copysign)(OWN(angle)(BUILTIN(fabs)(x), ONE), x); }

MP_INLINE FLOAT NAME(arctan2)(FLOAT y, FLOAT x) {
    FLOAT a = BUILTIN(fabs)(y), b = BUILTIN(fabs)(x);
    int both = (a == INFINITE) & (b == INFINITE), none = (a == 0) & (b == 0);
    FLOAT larger = a > b ? a : b;
    FLOAT scale = larger > ONLY(0x1p1000, 0x1p120f) ? (FLOAT)0.25 : larger < ONLY(0x1p-900, 0x1p-90f) ? (FLOAT)0x1p60 : ONE;
    a = both ? ONE : a * scale;
    b = both | none ? ONE : b * scale;
    FLOAT t = OWN(angle)(a, b);
    t = BUILTIN(copysign)(ONE, x) < 0 ? OWN(fma)(4, PI_4, OWN(fma)(4, PI_4_REST, -t)) : t;
    return BUILTIN(copysign)(t, y);
}

/* asin(t) = t + t*z*rest(z) of z = t*t; above 1/2 by pi/2 - 2 asin(sqrt((1 - a)/2)), whose root's rounding is taken back. */
MP_INLINE FLOAT NAME(arcsin)(FLOAT x) {
    FLOAT a = BUILTIN(fabs)(x), z = a < HALF ? a * a : HALF * (ONE - a);
    FLOAT t = a < HALF ? a : BUILTIN(sqrt)(z), u = t * z * OWN(asin_rest)(z);
    FLOAT rest = OWN(fma)(-t, t, z) / (2 * t);
    FLOAT y = 2 * PI_4 - 2 * (t + (u + (t > 0 ? rest : 0) - PI_4_REST));
    return BUILTIN(copysign)(a < HALF ? t + u : y, x);
}

MP_INLINE FLOAT NAME(arccos)(FLOAT x) {
    FLOAT a = BUILTIN(fabs)(x), z = a < HALF ? a * a : HALF * (ONE - a);
    FLOAT t = a < HALF ? x : BUILTIN(sqrt)(z), u = t * z * OWN(asin_rest)(z);
    FLOAT rest = OWN(fma)(-t, t, z) / (2 * t);
    FLOAT y = 2 * (t + (u + (t > 0 ? rest : 0)));
    y = x < 0 ? 4 * PI_4 - (y - 4 * PI_4_REST) : y;
    return a < HALF ? 2 * PI_4 - (t - (2 * PI_4_REST - u)) : y;
}

MP_INLINE FLOAT NAME(arcsinh)(FLOAT x) {
    FLOAT a = BUILTIN(fabs)(x);
    int large = a > ONLY(0x1p60, 0x1p30f);
    FLOAT b = large ? ONE : a;
    FLOAT u = large ? a : a + b * b / (ONE + BUILTIN(sqrt)(OWN(fma)(b, b, ONE)));
    return BUILTIN(copysign)(NAME(log1p)(u) + (large ? ONLY(0x1.62e42fefa39efp-1, 0x1.62e43p-1f) : 0), x);
}

MP_INLINE FLOAT NAME(arccosh)(FLOAT x) {
    int large = x > ONLY(0x1p60, 0x1p30f);
    FLOAT b = large ? ONE : x - ONE;
    FLOAT u = large ? x : b + BUILTIN(sqrt)(OWN(fma)(b, b, 2 * b));
    FLOAT y = NAME(log1p)(u) + (large ? ONLY(0x1.62e42fefa39efp-1, 0x1.62e43p-1f) : 0);
    return x < ONE ? BUILTIN(nan)("") : y;
}

MP_INLINE FLOAT NAME(arctanh)(FLOAT x) {
    FLOAT a = BUILTIN(fabs)(x), b = 2 * a;
    return BUILTIN(copysign)(HALF * NAME(log1p)(a < HALF ? b + b * a / (ONE - a) : b / (ONE - a)), x);
}

/* x = 2**(3k + j) m, j in -1, 0, 1: Newton's steps for the reciprocal of the root, which need no division. */
MP_INLINE FLOAT NAME(cbrt)(FLOAT x) {
    FLOAT a = BUILTIN(fabs)(x);
    int tiny = a < ONLY(0x1p-1022, 0x1p-126f);
    BITS i = SHIFTED(tiny ? a * ONLY(0x1p54, 0x1p24f) : a);
    FLOAT e = OWN(exponent)(i, tiny ? ONLY(54, 24) : 0), m = MANTISSA_OF(i);
    FLOAT t = OWN(fma)(e, ONLY(0x1.5555555555555p-2, 0x1.555556p-2f), MAGIC), j = e - 3 * (t - MAGIC);
    FLOAT v = j > 0 ? 2 * m : j < 0 ? HALF * m : m;
    FLOAT w = OWN(reciprocal_cbrt)(m);
    w *= j > 0 ? ONLY(0x1.965fea53d6e3dp-1, 0x1.965feap-1f) : j < 0 ? ONLY(0x1.428a2f98d728bp0, 0x1.428a3p0f) : ONE;
    FLOAT d = OWN(fma)(-v * w, w * w, ONE);
    w = OWN(fma)(w * d, OWN(fma)(d, ONLY(0x1.c71c71c71c71cp-3, 0x1.c71c72p-3f), ONLY(0x1.5555555555555p-2, 0x1.555556p-2f)), w);
    FLOAT square = w * w, y = v * square;
    y = OWN(fma)(OWN(fma)(-y * y, y, v), square * ONLY(0x1.5555555555555p-2, 0x1.555556p-2f), y);
    y = BUILTIN(copysign)(y * OWN(power)(t), x);
    return (a < INFINITE) & (a > 0) ? y : x;
}

/* sqrt(x*x + y*y), of numbers so scaled that their squares are normal. */
MP_INLINE FLOAT NAME(hypot)(FLOAT x, FLOAT y) {
    FLOAT p = BUILTIN(fabs)(x), q = BUILTIN(fabs)(y), larger = p > q ? p : q;
    FLOAT large = ONLY(0x1p500, 0x1p60f), small = ONLY(0x1p-450, 0x1p-45f);
    FLOAT scale = larger > large ? ONLY(0x1p-600, 0x1p-70f) : larger < small ? ONLY(0x1p600, 0x1p100f) : ONE;
    FLOAT back = larger > large ? ONLY(0x1p600, 0x1p70f) : larger < small ? ONLY(0x1p-600, 0x1p-100f) : ONE;
    p *= scale;
    q *= scale;
    FLOAT h = BUILTIN(sqrt)(OWN(fma)(p, p, q * q)) * back;
    return (p == INFINITE) | (q == INFINITE) ? INFINITE : h;
}

#undef MANTISSA
#undef ONE
#undef HALF
#undef MAGIC
#undef LOG2_E
#undef LOG_2
#undef LOG_2_REST
#undef INFINITE
#undef ROOT_OF_HALF
#undef SHIFTED
#undef MANTISSA_OF
#undef PI_4
#undef PI_4_REST
