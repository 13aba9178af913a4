// Mathematical functions that CUDA has and the C library may lack, and the conversions of 16-bit floats.
//
// In and out: double, or float where the name ends in f. Example: `erfinv(0.5)` is 0.4769362762044699. Errors are a
// few units in the last place.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

static const double NONE = std::numeric_limits<double>::quiet_NaN();
static const double ENDLESS = std::numeric_limits<double>::infinity();
static const double PI = 3.14159265358979323846;
static const double SQRT_PI = 1.77245385090551602730;
static const double SQRT_2 = 1.41421356237309504880;

// ---- Roots --------------------------------------------------------------------------------------------------------

extern "C" double rsqrt(double x) noexcept { return 1 / std::sqrt(x); }
extern "C" float rsqrtf(float x) noexcept { return (float)(1 / std::sqrt((double)x)); }
extern "C" double rcbrt(double x) noexcept { return 1 / std::cbrt(x); }

// ---- Sine and cosine of multiples of pi: exact where the result is 0, 1 or -1 -------------------------------------

extern "C" double sinpi(double x) noexcept {
    if (!std::isfinite(x)) return NONE;
    double rest = x - 2 * std::nearbyint(x / 2);  // in [-1, 1]
    if (rest == 0 || rest == 1 || rest == -1) return std::copysign(0.0, x);
    if (rest > 0.5) rest = 1 - rest;
    if (rest < -0.5) rest = -1 - rest;
    return std::sin(PI * rest);
}

extern "C" double cospi(double x) noexcept {
    if (!std::isfinite(x)) return NONE;
    double rest = std::fabs(x - 2 * std::nearbyint(x / 2));  // in [0, 1]
    if (rest == 0.5) return 0;
    return rest <= 0.25 ? std::cos(PI * rest) : std::sin(PI * (0.5 - rest));
}

extern "C" float sinpif(float x) noexcept { return (float)sinpi((double)x); }
extern "C" float cospif(float x) noexcept { return (float)cospi((double)x); }

// ---- The error function's relatives -------------------------------------------------------------------------------

// exp(x*x) * erfc(x): the product while it is exact enough, then a continued fraction, which falls fast there.
extern "C" double erfcx(double x) noexcept {
    if (x != x) return x;
    if (x < 2) {
        double square = x * x, error = std::fma(x, x, -square);  // of x*x, which exp would make large
        return std::exp(square) * (1 + error) * std::erfc(x);
    }
    if (x > 1e8) return 1 / (SQRT_PI * x);
    double tail = 0;
    for (int k = 160; k > 0; k--) tail = k / 2.0 / (x + tail);
    return 1 / (SQRT_PI * (x + tail));
}

// The y with erfc(y) = p, for p <= 1: a start within 1e-3, then Halley's steps.
static double inverse_of_small_erfc(double p) {
    double t = std::sqrt(-2 * std::log(p / 2));
    double y = 0.70711 * (t - (2.30753 + t * 0.27061) / (1 + t * (0.99229 + t * 0.04481)));
    for (int step = 0; step < 3; step++) {
        double over = (std::erfc(y) - p) / (2 / SQRT_PI * std::exp(-y * y));
        if (!std::isfinite(over)) break;
        y += over / (1 - y * over);
    }
    return y;
}

extern "C" double erfcinv(double p) noexcept {
    if (!(p >= 0 && p <= 2)) return NONE;
    if (p == 0) return ENDLESS;
    if (p == 2) return -ENDLESS;
    return p <= 1 ? inverse_of_small_erfc(p) : -inverse_of_small_erfc(2 - p);
}

extern "C" double erfinv(double p) noexcept {
    if (!(p >= -1 && p <= 1)) return NONE;
    if (p == 1 || p == -1) return p * ENDLESS;
    double y = std::fabs(p);
    if (y > 0.5) return std::copysign(inverse_of_small_erfc(1 - y), p);
    // Near 0 the equation is solved for erf itself, whose small values are exact.
    y *= SQRT_PI / 2;
    for (int step = 0; step < 5; step++) {
        double over = (std::erf(y) - std::fabs(p)) / (2 / SQRT_PI * std::exp(-y * y));
        y -= over / (1 + y * over);
    }
    return std::copysign(y, p);
}

extern "C" double normcdf(double x) noexcept { return 0.5 * std::erfc(-x / SQRT_2); }
extern "C" double normcdfinv(double p) noexcept { return -SQRT_2 * erfcinv(2 * p); }

// ---- Bessel functions ---------------------------------------------------------------------------------------------

extern "C" double cyl_bessel_i0(double x) noexcept {
    if (x != x) return x;
    return std::fabs(x) > 713 ? ENDLESS : std::cyl_bessel_i(0, std::fabs(x));
}

extern "C" double cyl_bessel_i1(double x) noexcept {
    if (x != x) return x;
    return std::copysign(std::fabs(x) > 713 ? ENDLESS : std::cyl_bessel_i(1, std::fabs(x)), x);
}

// ---- 16-bit floats ------------------------------------------------------------------------------------------------

static uint16_t bits_of(_Float16 x) {
    uint16_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & 0x7fff) > 0x7c00 ? 0x7fff : bits;  // a GPU has one NaN
}

extern "C" uint16_t cuemu_half_of_float(float x) { return bits_of((_Float16)x); }
extern "C" uint16_t cuemu_half_of_double(double x) { return bits_of((_Float16)x); }

extern "C" float cuemu_float_of_half(uint16_t bits) {
    _Float16 x;
    memcpy(&x, &bits, sizeof x);
    return (float)x;
}
