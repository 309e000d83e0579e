// Metrics of one pair in a single pass: what nbkit/metrics.py computes, which is the reference for what they mean.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

// One function for what every machine has, and one for wider registers; what has no such choice takes the first.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define NBKIT_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define NBKIT_WIDE
#endif
#define NBKIT_INLINE inline __attribute__((always_inline))

namespace nbkit {

// What a dtype can hold, as in nbkit/precision.py; all of these have Inf.
struct Precision {
  int digits;
  int min_exponent;
  double largest;
  double eps() const { return std::ldexp(1.0, -digits); }
  double least() const { return std::ldexp(1.0, min_exponent); }
  double spacing() const { return std::ldexp(1.0, std::max(min_exponent - digits, -1074)); }
};

// Fields in the order of Metrics, nbkit/metrics.py.
struct Measured {
  double numel = 0, actual_nan = 0, expected_nan = 0, actual_inf = 0, expected_inf = 0;
  double max_abs = 0, max_rel = 0, max_ulp = 0, noise = 0;
  double sum_abs = 0, sum_error = 0, sum_squared = 0, inner = 0, actual_square = 0, expected_square = 0;
};
using Columns = std::array<double, sizeof(Measured) / sizeof(double)>;

enum class Kind { float64, float32, bfloat16, float16 };

constexpr int64_t block_length = 2048;  // elements measured at a time: they stay in the innermost cache
typedef double Doubles __attribute__((vector_size(32)));
typedef int64_t Longs __attribute__((vector_size(32)));
typedef float Floats __attribute__((vector_size(16)));
typedef uint32_t Words __attribute__((vector_size(16)));
typedef uint16_t Shorts __attribute__((vector_size(8)));
constexpr int64_t lanes = 4;

template <typename To, typename From>
NBKIT_INLINE To bits_of(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}

template <typename Vector>
NBKIT_INLINE Vector loaded(const void* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof(Vector));
  return vector;
}

NBKIT_INLINE double sum_of(Doubles values) { return (values[0] + values[1]) + (values[2] + values[3]); }
NBKIT_INLINE Doubles all_of(double value) { return Doubles{value, value, value, value}; }

NBKIT_INLINE Words widened_half(Shorts shorts) {
  Words half = __builtin_convertvector(shorts, Words);
  Words size = (half & 0x7fff) << 13;
  // The exponent of a float, with what it makes of the smallest numbers; Inf and NaN stay what they are.
  Floats scaled = bits_of<Floats>(size) * 0x1p112f;
  Words is_special = reinterpret_cast<Words>((half & 0x7c00) == 0x7c00);
  return bits_of<Words>(scaled) | (is_special & 0x7f800000) | ((half & 0x8000) << 16);
}

template <Kind kind>
NBKIT_INLINE Doubles four_of(const void* from) {
  Floats floats;
  if constexpr (kind == Kind::float32) {
    floats = loaded<Floats>(from);
  } else {
    const Shorts shorts = loaded<Shorts>(from);
    floats = bits_of<Floats>(kind == Kind::bfloat16 ? __builtin_convertvector(shorts, Words) << 16
                                                    : widened_half(shorts));
  }
  return __builtin_convertvector(floats, Doubles);
}

template <Kind kind>
NBKIT_INLINE void widen_as(const void* from, int64_t first, int64_t count, double* to) {
  constexpr int64_t size = kind == Kind::float32 ? 4 : 2;
  const char* at = static_cast<const char*>(from) + first * size;
  for (const double* end = to + count; to < end; to += lanes, at += lanes * size) {
    const Doubles wide = four_of<kind>(at);
    std::memcpy(to, &wide, sizeof(wide));
  }
}

// `count` (a multiple of 4) values from `first` on, in float64; not of float64.
NBKIT_WIDE inline void widen(const void* from, Kind kind, int64_t first, int64_t count, double* to) {
  if (kind == Kind::float32) {
    widen_as<Kind::float32>(from, first, count, to);
  } else if (kind == Kind::bfloat16) {
    widen_as<Kind::bfloat16>(from, first, count, to);
  } else {
    widen_as<Kind::float16>(from, first, count, to);
  }
}

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
  double rel = 0, noise = 0;
  int64_t steps = 0;  // of float64, where they count the values of the dtype in order
  double ulp = 0;     // elsewhere

  void look(double actual, double expected, double level, const Precision& precision) {
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
  Measured found;
  Largest largest;
};

// Adds `count` (a multiple of 16) elements.
NBKIT_WIDE inline void add_block(const double* actual, const double* expected, int64_t count, double level,
                                 const Precision& precision, Sums& sums) {
  Largest& largest = sums.largest;
  const Longs magnitude = Longs{} + std::numeric_limits<int64_t>::max();
  const Doubles none{}, levels = all_of(level), least = all_of(2 * precision.least()), tiny = all_of(1e-290);
  // Less than a rounding below: what is not above it is not the largest.
  const double near = 1 - 0x1p-50;
  Doubles rel = all_of(largest.rel * near), noise = all_of(largest.noise * near);
  Longs most = Longs{} + largest.steps;
  Doubles max_abs{}, sum_abs{}, sum_error{}, sum_squared{}, inner{}, actual_square{}, expected_square{};
  for (int64_t at = 0; at < count; at += 4 * lanes) {
    Longs is_larger{};
    for (int64_t part = at; part < at + 4 * lanes; part += lanes) {
      const Doubles a = loaded<Doubles>(actual + part), e = loaded<Doubles>(expected + part), error = a - e;
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
      const Longs is_odd = (expected_size < least) | (size > 0.5 * expected_size);
      is_larger |= ((size > rel * expected_size - tiny) | (size > noise * (expected_size + levels) - tiny) |
                    (steps > most) | (-steps > most) | is_odd) &
                   (size > none);
    }
    if (((is_larger[0] | is_larger[1]) | (is_larger[2] | is_larger[3])) != 0) {
      for (int64_t one = at; one < at + 4 * lanes; ++one) {
        largest.look(actual[one], expected[one], level, precision);
      }
      rel = all_of(largest.rel * near), noise = all_of(largest.noise * near);
      most = Longs{} + largest.steps;
    }
  }
  Measured& found = sums.found;
  found.max_abs = std::max({found.max_abs, max_abs[0], max_abs[1], max_abs[2], max_abs[3]});
  found.sum_abs += sum_of(sum_abs);
  found.sum_error += sum_of(sum_error);
  found.sum_squared += sum_of(sum_squared);
  found.inner += sum_of(inner);
  found.actual_square += sum_of(actual_square);
  found.expected_square += sum_of(expected_square);
}

NBKIT_WIDE inline double square_sum(const double* values, int64_t count) {
  double total = 0;
  int64_t at = 0;
  while (at + 4 * lanes <= count) {
    Doubles sums[4] = {};
    for (const int64_t end = std::min(at + block_length, count); at + 4 * lanes <= end; at += 4 * lanes) {
      for (int64_t part = 0; part < 4; ++part) {
        const Doubles one = loaded<Doubles>(values + at + part * lanes);
        sums[part] += one * one;
      }
    }
    total += sum_of((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
  for (; at < count; ++at) {
    total += values[at] * values[at];
  }
  return total;
}

// Root mean square of the finite values.
inline double root_mean_square(const double* values, int64_t count) {
  const double square = square_sum(values, count);
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
                            Measured& found) {
  for (int64_t at = 0; at < count; ++at) {
    found.actual_nan += std::isnan(actual[at]);
    found.expected_nan += std::isnan(expected[at]);
    found.actual_inf += std::isinf(actual[at]);
    found.expected_inf += std::isinf(expected[at]);
    if (agree(actual[at], expected[at], precision)) {
      actual[at] = expected[at] = 0;
    }
  }
}

// Any number of values, in float64.
inline void widen_all(const void* from, Kind kind, int64_t count, double* to) {
  if (kind == Kind::float64) {
    std::memcpy(to, from, count * sizeof(double));
    return;
  }
  const int64_t fours = count / lanes * lanes, size = kind == Kind::float32 ? 4 : 2;
  widen(from, kind, 0, fours, to);
  if (count > fours) {
    alignas(16) char last[lanes * sizeof(float)] = {};
    std::memcpy(last, static_cast<const char*>(from) + fours * size, (count - fours) * size);
    double wide[lanes];
    widen(last, kind, 0, lanes, wide);
    std::memcpy(to + fours, wide, (count - fours) * sizeof(double));
  }
}

// The pair from element `first` on, in float64, filled up with zeros to a multiple of 16; the number of elements then.
inline int64_t block_of(const void* actual, Kind kind, const double* expected, int64_t first, int64_t count,
                        double* left, double* right) {
  const int64_t padded = (count + 15) / 16 * 16, size = kind == Kind::float64 ? 8 : kind == Kind::float32 ? 4 : 2;
  widen_all(static_cast<const char*>(actual) + first * size, kind, count, left);
  std::memcpy(right, expected + first, count * sizeof(double));
  std::fill(left + count, left + padded, 0.0);
  std::fill(right + count, right + padded, 0.0);
  return padded;
}

// Metrics of a pair that lies in order in memory; false where they are not all finite, which is left to Python.
inline bool measure(const void* actual, Kind kind, const double* expected, int64_t count, const Precision& precision,
                    Measured& result) {
  const double level = root_mean_square(expected, count) + precision.spacing() / precision.eps();
  alignas(32) double left[block_length + 16], right[block_length + 16];
  Sums sums;
  for (int64_t first = 0; first < count; first += block_length) {
    const int64_t length = std::min(block_length, count - first);
    const Sums before = sums;
    const bool is_whole = length % 16 == 0;
    const double* wide = left;
    int64_t padded = length;
    if (!is_whole) {
      padded = block_of(actual, kind, expected, first, length, left, right);
    } else if (kind == Kind::float64) {
      wide = static_cast<const double*>(actual) + first;
    } else {
      widen(actual, kind, first, length, left);
    }
    add_block(wide, is_whole ? expected + first : right, padded, level, precision, sums);
    if (!std::isfinite(sums.found.sum_abs)) {
      sums = before;
      block_of(actual, kind, expected, first, length, left, right);
      count_and_clear(left, right, length, precision, sums.found);
      add_block(left, right, padded, level, precision, sums);
      if (!std::isfinite(sums.found.sum_abs)) {
        return false;
      }
    }
  }
  result = sums.found;
  result.numel = static_cast<double>(count);
  result.max_rel = sums.largest.rel;
  result.noise = sums.largest.noise / precision.eps();
  const double steps = static_cast<double>(sums.largest.steps) * std::ldexp(1.0, precision.digits - 52);
  result.max_ulp = std::max(steps, sums.largest.ulp);
  return true;
}

// Metrics of integers that are equal; false where one differs.
template <typename Integer>
bool measure_equal(const void* actual, const void* expected, int64_t count, Measured& result) {
  if (count > 0 && std::memcmp(actual, expected, count * sizeof(Integer)) != 0) {
    return false;
  }
  result = Measured{};
  result.numel = static_cast<double>(count);
  for (int64_t at = 0; at < count; ++at) {
    const auto value = static_cast<double>(static_cast<const Integer*>(actual)[at]);
    result.inner += value * value;
  }
  result.actual_square = result.expected_square = result.inner;
  return true;
}

}  // namespace nbkit
