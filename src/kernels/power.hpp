// Powers of probabilities in single precision.
// Included by one translation unit per instruction set: everything here is inline and static.
#pragma once

#include "simd.hpp"

namespace {

// x ^ beta for x in [0, 2), to 1e-7 of its value: 2 ^ (beta exponent) from two small tables, and
// a polynomial for the mantissa. A third of the work of exp(beta log x). Below 2 ^ -63 it is zero.
class Power {
  public:
    explicit Power(double beta) {
        for (int l = 0; l < LANES; ++l) {
            ones_[l] = static_cast<float>(std::exp2(-beta * l));
            eights_[l] = static_cast<float>(std::exp2(-beta * LANES * l));
        }
        fit(beta);
    }

    Vec<float> operator()(const Vec<float>& x) const {
        const Int8 bits = std::bit_cast<Int8>(x);
        const Int8 down = 127 - (bits >> 23);  // halvings from the mantissa to x
        const Int8 mantissa = (bits & 0x007fffff) | 0x40000000;  // in [2, 4)
        const Vec<float> t = std::bit_cast<Vec<float>>(mantissa) - 3.0f;
        Vec<float> p = Vec<float>{} + c_[DEGREE];
        for (int d = DEGREE - 1; d >= 0; --d) p = p * t + c_[d];
        p *= lanes<float>(ones_, ones_, down & 7) * lanes<float>(eights_, eights_, (down >> 3) & 7);
        return down < 64 ? p : Vec<float>{};
    }

  private:
    static constexpr int DEGREE = 7;

    // The polynomial in t through ((3 + t) / 2) ^ beta at the Chebyshev points of [-1, 1].
    void fit(double beta) {
        constexpr int N = DEGREE + 1;
        double point[N];
        double slope[N];
        for (int i = 0; i < N; ++i) {
            point[i] = std::cos((i + 0.5) * 3.14159265358979323846 / N);
            slope[i] = std::pow((3.0 + point[i]) / 2.0, beta);
        }
        for (int d = 1; d < N; ++d) {  // divided differences
            for (int i = N - 1; i >= d; --i) {
                slope[i] = (slope[i] - slope[i - 1]) / (point[i] - point[i - d]);
            }
        }
        double c[N] = {};
        for (int i = N - 1; i >= 0; --i) {  // c(t) = c(t) (t - point) + slope
            for (int d = N - 1; d > 0; --d) c[d] = c[d - 1] - point[i] * c[d];
            c[0] = slope[i] - point[i] * c[0];
        }
        for (int d = 0; d < N; ++d) c_[d] = static_cast<float>(c[d]);
    }

    Vec<float> ones_;
    Vec<float> eights_;
    float c_[DEGREE + 1];
};

}  // namespace
