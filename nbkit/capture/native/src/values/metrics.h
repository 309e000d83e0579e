// Metrics of one pair in a single pass: what nbkit/numerics/metrics.py computes, which is the reference for what they mean.
// opdiff's judge calls measured_pair(), and nothing else.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "../tensors.h"
#include "vectors.h"

namespace nbkit {

// What a dtype can hold, as in nbkit/numerics/precision.py; all of these have Inf.
struct Precision {
  int digits;
  int min_exponent;
  double largest;
  double eps() const { return std::ldexp(1.0, -digits); }
  double least() const { return std::ldexp(1.0, min_exponent); }
  double spacing() const { return std::ldexp(1.0, std::max(min_exponent - digits, -1074)); }
};

// Fields in the order of Metrics, nbkit/numerics/metrics.py.
struct Measured {
  double numel = 0, actual_nan = 0, expected_nan = 0, actual_inf = 0, expected_inf = 0;
  double max_abs = 0, max_rel = 0, max_ulp = 0, noise = 0;
  double sum_abs = 0, sum_error = 0, sum_squared = 0, inner = 0, actual_square = 0, expected_square = 0;
};
using Columns = std::array<double, sizeof(Measured) / sizeof(double)>;

constexpr int64_t block_length = 2048;  // elements measured at a time: they stay in the innermost cache
constexpr int64_t lanes = 4, stride = 4 * lanes;

// How many values of the dtype lie between zero and `size`, the last step a fraction.
inline double values_below(double size, const Precision& precision) {
  const double least = precision.least();
  if (size < least) {
    return size / least * std::ldexp(1.0, precision.digits);
  }
  const auto above = bits_of<int64_t>(size) - bits_of<int64_t>(least);
  return static_cast<double>(above) * std::ldexp(1.0, precision.digits - 52) + std::ldexp(1.0, precision.digits);
}

inline double distance(double actual, double expected, const Precision& precision) {
  const double first = values_below(std::abs(actual), precision), second = values_below(std::abs(expected), precision);
  return std::signbit(actual) == std::signbit(expected) ? std::abs(first - second) : first + second;
}

// The largest of each quotient so far. To find out that a quotient is smaller takes a product, not a division.
struct Largest {
  double level;
  double rel = 0, noise = 0;
  int64_t steps = 0;  // of float64, where they count the values of the dtype in order
  double ulp = 0;     // elsewhere

  void look(double actual, double expected, const Precision& precision) {
    const double size = std::abs(actual - expected), expected_size = std::abs(expected);
    if (!(size > 0)) {
      return;
    }
    rel = std::max(rel, size / expected_size);
    noise = std::max(noise, size / (expected_size + level));
    if (expected_size >= 2 * precision.least() && size <= 0.5 * expected_size) {
      steps = std::max(steps, std::abs(bits_of<int64_t>(actual) - bits_of<int64_t>(expected)));
    } else {
      ulp = std::max(ulp, distance(actual, expected, precision));
    }
  }
};

struct Sums {
  Measured measured;
  Largest largest;
};

// What four elements must exceed to be the largest in anything. Less than a rounding below: what is not above it is not
// the largest. Beyond a half, steps are counted otherwise.
struct Thresholds {
  Doubles least, rel, noise, noise_level;
  Longs shift, most;  // steps + shift > most where |steps| > largest.steps: one comparison, of numbers that wrap around

  NBKIT_INLINE void learn(const Largest& largest) {
    const double near = 1 - 0x1p-50;
    rel = all_of(std::min(largest.rel, 0.5) * near), noise = all_of(largest.noise * near);
    noise_level = noise * largest.level;
    const int64_t first = std::numeric_limits<int64_t>::min();
    shift = Longs{} + (first + largest.steps), most = Longs{} + (first + 2 * largest.steps);
  }

  NBKIT_INLINE Longs exceeded(Doubles size, Doubles expected_size, Longs steps) const {
    const Doubles by_rel = rel * expected_size, by_noise = noise * expected_size + noise_level;
    const Doubles lower = by_rel < by_noise ? by_rel : by_noise;
    const auto usual = reinterpret_cast<Doubles>(reinterpret_cast<Longs>(lower) & (expected_size >= least));
    return (size > usual) | (steps + shift > most);
  }
};

// Adds `count` (a multiple of 16) elements.
NBKIT_WIDE inline void add_block(const double* actual, const double* expected, int64_t count,
                                 const Precision& precision, Sums& sums) {
  Largest& largest = sums.largest;
  const Longs magnitude = Longs{} + std::numeric_limits<int64_t>::max();
  Thresholds thresholds{all_of(std::max(2 * precision.least(), 1e-280))};
  thresholds.learn(largest);
  Doubles max_abs{}, sum_abs{}, sum_error{}, sum_squared{}, inner{}, actual_square{}, expected_square{};
  for (int64_t at = 0; at < count; at += stride) {
    Longs is_larger[4];
#pragma GCC unroll 4
    for (int64_t part = 0; part < 4; ++part) {
      const Doubles a = loaded<Doubles>(actual + at + part * lanes);
      const Doubles e = loaded<Doubles>(expected + at + part * lanes);
      const Doubles error = a - e;
      const Doubles size = reinterpret_cast<Doubles>(reinterpret_cast<Longs>(error) & magnitude);
      const Doubles expected_size = reinterpret_cast<Doubles>(reinterpret_cast<Longs>(e) & magnitude);
      max_abs = size > max_abs ? size : max_abs;
      sum_abs += size;
      sum_error += error;
      sum_squared += error * error;
      inner += a * e;
      actual_square += a * a;
      expected_square += e * e;
      const Longs steps = reinterpret_cast<Longs>(a) - reinterpret_cast<Longs>(e);
      is_larger[part] = thresholds.exceeded(size, expected_size, steps);
    }
    const Longs any = (is_larger[0] | is_larger[1]) | (is_larger[2] | is_larger[3]);
    if (((any[0] | any[1]) | (any[2] | any[3])) != 0) {
      for (int64_t one = 0; one < stride; ++one) {
        if (is_larger[one / lanes][one % lanes] != 0) {
          largest.look(actual[at + one], expected[at + one], precision);
        }
      }
      thresholds.learn(largest);
    }
  }
  Measured& measured = sums.measured;
  measured.max_abs = std::max({measured.max_abs, max_abs[0], max_abs[1], max_abs[2], max_abs[3]});
  measured.sum_abs += sum_of(sum_abs);
  measured.sum_error += sum_of(sum_error);
  measured.sum_squared += sum_of(sum_squared);
  measured.inner += sum_of(inner);
  measured.actual_square += sum_of(actual_square);
  measured.expected_square += sum_of(expected_square);
}

// Root mean square of the finite values.
NBKIT_WIDE inline double root_mean_square(const double* values, int64_t count) {
  Doubles sums[4] = {};
  const int64_t whole = count / stride * stride;
  for (int64_t at = 0; at < whole; at += lanes) {
    const Doubles four = loaded<Doubles>(values + at);
    sums[at / lanes % 4] += four * four;
  }
  double square = sum_of((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (int64_t at = whole; at < count; ++at) {
    square += values[at] * values[at];
  }
  if (std::isfinite(square)) {
    return std::sqrt(square / static_cast<double>(std::max<int64_t>(count, 1)));
  }
  double largest = 0, sum = 0, finite = 0;
  for (int64_t at = 0; at < count; ++at) {
    largest = std::isfinite(values[at]) ? std::max(largest, std::abs(values[at])) : largest;
  }
  for (int64_t at = 0; at < count && largest > 0; ++at) {
    if (std::isfinite(values[at])) {
      sum += (values[at] / largest) * (values[at] / largest);
      ++finite;
    }
  }
  return largest > 0 ? largest * std::sqrt(sum / finite) : 0.0;
}

// Whether an element with NaN or Inf agrees: both NaN, both the same Inf, or overflowed as its dtype has to.
inline bool agree(double actual, double expected, const Precision& precision) {
  if (std::isnan(expected)) {
    return std::isnan(actual);
  }
  if (!std::isinf(actual)) {
    return false;
  }
  const bool is_out = std::abs(expected) > precision.largest * (1 - precision.eps());
  return actual == expected || (is_out && std::signbit(actual) == std::signbit(expected));
}

// Counts NaN and Inf, and puts zeros where both sides agree on them.
inline void count_and_clear(double* actual, double* expected, int64_t count, const Precision& precision,
                            Measured& measured) {
  for (int64_t at = 0; at < count; ++at) {
    measured.actual_nan += std::isnan(actual[at]);
    measured.expected_nan += std::isnan(expected[at]);
    measured.actual_inf += std::isinf(actual[at]);
    measured.expected_inf += std::isinf(expected[at]);
    if (agree(actual[at], expected[at], precision)) {
      actual[at] = expected[at] = 0;
    }
  }
}

// Adds any number of elements; those that do not fill a stride are measured beside zeros.
inline void add_any(const double* actual, const double* expected, int64_t count, const Precision& precision, Sums& sums) {
  const int64_t whole = count / stride * stride;
  add_block(actual, expected, whole, precision, sums);
  if (whole < count) {
    double left[stride] = {}, right[stride] = {};
    std::copy(actual + whole, actual + count, left);
    std::copy(expected + whole, expected + count, right);
    add_block(left, right, stride, precision, sums);
  }
}

// The elements as float64: themselves, or widened into `room`.
inline const double* in_double(const double* from, double*, int64_t) { return from; }
NBKIT_WIDE inline const double* in_double(const float* from, double* room, int64_t count) {
  const int64_t whole = count / lanes * lanes;
  for (int64_t at = 0; at < whole; at += lanes) {
    const Doubles four = __builtin_convertvector(loaded<Floats>(from + at), Doubles);
    std::memcpy(room + at, &four, sizeof(Doubles));
  }
  std::copy(from + whole, from + count, room + whole);
  return room;
}

// Metrics of a pair, whose noise is set against the level `scale` if it is not negative, else against that of `expected`.
// Narrower elements are widened block by block, in the innermost cache.
template <typename Actual>
inline Measured measure(const Actual* actual, const double* expected, int64_t count, const Precision& precision,
                        double scale) {
  const double level = (scale < 0 ? root_mean_square(expected, count) : scale) + precision.spacing() / precision.eps();
  Sums sums{{}, {level}};
  for (int64_t first = 0; first < count; first += block_length) {
    const int64_t length = std::min(block_length, count - first);
    const Sums before = sums;
    double left[block_length], right[block_length];
    const double* const block = in_double(actual + first, left, length);
    add_any(block, expected + first, length, precision, sums);
    if (!std::isfinite(sums.measured.sum_abs)) {
      sums = before;
      std::memmove(left, block, length * sizeof(double));
      std::copy(expected + first, expected + first + length, right);
      count_and_clear(left, right, length, precision, sums.measured);
      add_any(left, right, length, precision, sums);
    }
  }
  Measured result = sums.measured;
  result.numel = static_cast<double>(count);
  result.max_rel = sums.largest.rel;
  result.noise = sums.largest.noise / precision.eps();
  const double steps = static_cast<double>(sums.largest.steps) * std::ldexp(1.0, precision.digits - 52);
  result.max_ulp = std::max(steps, sums.largest.ulp);
  return result;
}

inline bool is_measurable(const at::Tensor& tensor) {
  return is_plain(tensor) && tensor.device().is_cpu() && tensor.is_contiguous() && !tensor.is_neg();
}

// Metrics of a pair, `expected` in float64 and `actual` in that or float32, in the order of Metrics of
// nbkit/numerics/metrics.py; None where they are numpy's work: other dtypes, memory of another kind, and what is not finite
// on one side only. `precision` is (digits, min_exponent, largest).
inline py::object measured_pair(const at::Tensor& actual, const at::Tensor& expected,
                                const std::tuple<int, int, double>& precision, double scale) {
  const auto type = actual.scalar_type();
  if (!is_measurable(actual) || !is_measurable(expected) || actual.numel() != expected.numel() ||
      expected.scalar_type() != c10::kDouble || (type != c10::kDouble && type != c10::kFloat)) {
    return py::none();
  }
  const Precision held{std::get<0>(precision), std::get<1>(precision), std::get<2>(precision)};
  const double* wanted = expected.const_data_ptr<double>();
  const Measured measured = type == c10::kFloat
                                ? measure(actual.const_data_ptr<float>(), wanted, actual.numel(), held, scale)
                                : measure(actual.const_data_ptr<double>(), wanted, actual.numel(), held, scale);
  return std::isfinite(measured.sum_abs) ? py::object(py::cast(bits_of<Columns>(measured))) : py::none();
}

}  // namespace nbkit
