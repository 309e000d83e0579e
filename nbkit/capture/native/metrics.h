// Metrics of one pair in a single pass: what nbkit/numerics/metrics.py computes, which is the reference for what they mean.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>

// One function for what every machine has, and one for wider registers; what has no such choice takes the first.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define NBKIT_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define NBKIT_WIDE
#endif
#define NBKIT_INLINE inline __attribute__((always_inline))

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

constexpr int64_t size_of(Kind kind) { return kind == Kind::float64 ? 8 : kind == Kind::float32 ? 4 : 2; }

template <Kind kind>
NBKIT_INLINE Doubles four_of(const void* from) {
  Floats floats;
  if constexpr (kind == Kind::float64) {
    return loaded<Doubles>(from);
  } else if constexpr (kind == Kind::float32) {
    floats = loaded<Floats>(from);
  } else {
    const Shorts shorts = loaded<Shorts>(from);
    floats = bits_of<Floats>(kind == Kind::bfloat16 ? __builtin_convertvector(shorts, Words) << 16
                                                    : widened_half(shorts));
  }
  // One instruction, of which g++ makes two halves and a way through memory if it is asked for a converted vector.
  return Doubles{static_cast<double>(floats[0]), static_cast<double>(floats[1]), static_cast<double>(floats[2]),
                 static_cast<double>(floats[3])};
}

template <Kind kind>
NBKIT_INLINE void widen_as(const void* from, int64_t first, int64_t count, double* to) {
  constexpr int64_t size = size_of(kind);
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

// The elements whose noise ratio may turn out to be the largest, while their level is known to lie between two bounds.
class Noisiest {
 public:
  Noisiest(double low, double high) : low_(low), high_(high) {}

  double low() const { return low_; }
  // The largest ratio is at least this.
  double least() const { return least_; }

  void look(double size, double expected_size) {
    if (size / (expected_size + low_) > least_) {
      least_ = std::max(least_, size / (expected_size + high_));
      remember({size, expected_size});
    }
  }

  // None if there were too many of them.
  std::optional<double> against(double level) const {
    double largest = 0;
    for (size_t one = 0; one < count_; ++one) {
      largest = std::max(largest, known_[one].size / (known_[one].expected_size + level));
    }
    return is_full_ ? std::nullopt : std::optional(largest);
  }

 private:
  struct Element {
    double size, expected_size;
  };

  void remember(const Element& element) {
    if (count_ == known_.size()) {
      const auto rest = std::remove_if(known_.begin(), known_.end(), [&](const Element& one) {
        return one.size / (one.expected_size + low_) < least_;
      });
      count_ = rest - known_.begin();
    }
    is_full_ = is_full_ || count_ == known_.size();
    if (!is_full_) {
      known_[count_++] = element;
    }
  }

  double low_, high_, least_ = 0;
  size_t count_ = 0;
  bool is_full_ = false;
  std::array<Element, 32> known_;
};

// The largest of each quotient so far. To find out that a quotient is smaller takes a product, not a division.
struct Largest {
  Noisiest noise;
  double rel = 0;
  int64_t steps = 0;  // of float64, where they count the values of the dtype in order
  double ulp = 0;     // elsewhere

  void look(double actual, double expected, const Precision& precision) {
    const double size = std::abs(actual - expected), expected_size = std::abs(expected);
    if (!(size > 0)) {
      return;
    }
    rel = std::max(rel, size / expected_size);
    noise.look(size, expected_size);
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
template <Kind kind>
NBKIT_INLINE void add_as(const char* actual, const double* expected, int64_t count, const Precision& precision,
                         Sums& sums) {
  Largest& largest = sums.largest;
  const Longs magnitude = Longs{} + std::numeric_limits<int64_t>::max();
  const Doubles least = all_of(std::max(2 * precision.least(), 1e-280));
  // Less than a rounding below: what is not above it is not the largest. Beyond a half, steps are counted otherwise.
  const double near = 1 - 0x1p-50;
  Doubles rel, noise, noise_level;
  Longs shift, most;  // steps + shift > most where |steps| > largest.steps: one comparison, of numbers that wrap around
  const auto learn = [&] {
    rel = all_of(std::min(largest.rel, 0.5) * near), noise = all_of(largest.noise.least() * near);
    noise_level = noise * largest.noise.low();
    const int64_t first = std::numeric_limits<int64_t>::min();
    shift = Longs{} + (first + largest.steps), most = Longs{} + (first + 2 * largest.steps);
  };
  learn();
  Doubles max_abs{}, sum_abs{}, sum_error{}, sum_squared{}, inner{}, actual_square{}, expected_square{};
  for (int64_t at = 0; at < count; at += 4 * lanes) {
    Longs is_larger[4];
#pragma GCC unroll 4
    for (int64_t part = 0; part < 4; ++part) {
      const Doubles a = four_of<kind>(actual + (at + part * lanes) * size_of(kind));
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
      const Doubles by_rel = rel * expected_size, by_noise = noise * expected_size + noise_level;
      const Doubles lower = by_rel < by_noise ? by_rel : by_noise;
      const auto usual = reinterpret_cast<Doubles>(reinterpret_cast<Longs>(lower) & (expected_size >= least));
      is_larger[part] = (size > usual) | (steps + shift > most);
    }
    const Longs any = (is_larger[0] | is_larger[1]) | (is_larger[2] | is_larger[3]);
    if (((any[0] | any[1]) | (any[2] | any[3])) != 0) {
      for (int64_t one = 0; one < 4 * lanes; ++one) {
        if (is_larger[one / lanes][one % lanes] != 0) {
          const Doubles a = four_of<kind>(actual + (at + one / lanes * lanes) * size_of(kind));
          largest.look(a[one % lanes], expected[at + one], precision);
        }
      }
      learn();
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

NBKIT_WIDE inline void add_block(const void* actual, Kind kind, const double* expected, int64_t count,
                                 const Precision& precision, Sums& sums) {
  const char* from = static_cast<const char*>(actual);
  switch (kind) {
    case Kind::float32:
      return add_as<Kind::float32>(from, expected, count, precision, sums);
    case Kind::bfloat16:
      return add_as<Kind::bfloat16>(from, expected, count, precision, sums);
    case Kind::float16:
      return add_as<Kind::float16>(from, expected, count, precision, sums);
    default:
      return add_as<Kind::float64>(from, expected, count, precision, sums);
  }
}

template <Kind kind>
NBKIT_INLINE double squares_as(const char* from, int64_t count) {
  double total = 0;
  for (int64_t at = 0; at < count;) {
    Doubles sums[4] = {};
    for (const int64_t end = std::min(at + block_length, count); at < end; at += 4 * lanes) {
#pragma GCC unroll 4
      for (int64_t part = 0; part < 4; ++part) {
        const Doubles one = four_of<kind>(from + (at + part * lanes) * size_of(kind));
        sums[part] += one * one;
      }
    }
    total += sum_of((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
  return total;
}

// Sum of the squares of `count` (a multiple of 16) values.
NBKIT_WIDE inline double squares_of(const void* values, Kind kind, int64_t count) {
  const char* from = static_cast<const char*>(values);
  switch (kind) {
    case Kind::float32:
      return squares_as<Kind::float32>(from, count);
    case Kind::bfloat16:
      return squares_as<Kind::bfloat16>(from, count);
    case Kind::float16:
      return squares_as<Kind::float16>(from, count);
    default:
      return squares_as<Kind::float64>(from, count);
  }
}

// Any number of values, in float64.
inline void widen_all(const void* from, Kind kind, int64_t count, double* to) {
  if (kind == Kind::float64) {
    std::memcpy(to, from, count * sizeof(double));
    return;
  }
  const int64_t fours = count / lanes * lanes, size = size_of(kind);
  widen(from, kind, 0, fours, to);
  if (count > fours) {
    alignas(16) char last[lanes * sizeof(float)] = {};
    std::memcpy(last, static_cast<const char*>(from) + fours * size, (count - fours) * size);
    double wide[lanes];
    widen(last, kind, 0, lanes, wide);
    std::memcpy(to + fours, wide, (count - fours) * sizeof(double));
  }
}

// Sum of the squares of any number of values; not finite if one of them is not.
inline double square_sum(const void* values, Kind kind, int64_t count) {
  const int64_t whole = count / 16 * 16;
  double last[16] = {};
  widen_all(static_cast<const char*>(values) + whole * size_of(kind), kind, count - whole, last);
  return squares_of(values, kind, whole) + squares_of(last, Kind::float64, 16);
}

// Root mean square of the finite values.
inline double root_mean_square(const double* values, int64_t count) {
  const double square = square_sum(values, Kind::float64, count);
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

// The pair from element `first` on, in float64, filled up with zeros to a multiple of 16; the number of elements then.
inline int64_t block_of(const void* actual, Kind kind, const double* expected, int64_t first, int64_t count,
                        double* left, double* right) {
  const int64_t padded = (count + 15) / 16 * 16;
  widen_all(static_cast<const char*>(actual) + first * size_of(kind), kind, count, left);
  std::memcpy(right, expected + first, count * sizeof(double));
  std::fill(left + count, left + padded, 0.0);
  std::fill(right + count, right + padded, 0.0);
  return padded;
}

// Metrics of a pair that comes in parts, each of which lies in order in memory.
class Measuring {
 public:
  // The level that noise ratios are taken against is between `low` and `high`.
  Measuring(Kind kind, const Precision& precision, double low, double high)
      : kind_(kind), precision_(precision), sums_{{}, {{low, high}}} {}

  // False where the sums are not finite, which is left to Python.
  bool add(const void* actual, const double* expected, int64_t count) {
    bool is_finite = true;
    for (int64_t first = 0; first < count && is_finite; first += block_length) {
      is_finite = add_part(static_cast<const char*>(actual) + first * size_of(kind_), expected + first,
                           std::min(block_length, count - first));
    }
    count_ += is_finite ? count : 0;
    return is_finite;
  }

  // Of the expected values so far.
  double level() const { return std::sqrt(sums_.found.expected_square / static_cast<double>(count_)) + floor(precision_); }

  // None where the bounds of the level were too far apart.
  std::optional<Measured> found(double level) const {
    const auto noise = sums_.largest.noise.against(level);
    if (!noise.has_value()) {
      return std::nullopt;
    }
    Measured result = sums_.found;
    result.numel = static_cast<double>(count_);
    result.max_rel = sums_.largest.rel;
    result.noise = *noise / precision_.eps();
    const double steps = static_cast<double>(sums_.largest.steps) * std::ldexp(1.0, precision_.digits - 52);
    result.max_ulp = std::max(steps, sums_.largest.ulp);
    return result;
  }

  static double floor(const Precision& precision) { return precision.spacing() / precision.eps(); }

 private:
  bool add_part(const char* actual, const double* expected, int64_t count) {
    const Sums before = sums_;
    if (count % 16 == 0) {
      add_block(actual, kind_, expected, count, precision_, sums_);
    } else {
      add_padded(block_of(actual, kind_, expected, 0, count, left_, right_));
    }
    if (!std::isfinite(sums_.found.sum_abs)) {
      sums_ = before;
      const int64_t padded = block_of(actual, kind_, expected, 0, count, left_, right_);
      count_and_clear(left_, right_, count, precision_, sums_.found);
      add_padded(padded);
    }
    return std::isfinite(sums_.found.sum_abs);
  }

  void add_padded(int64_t count) { add_block(left_, Kind::float64, right_, count, precision_, sums_); }

  const Kind kind_;
  const Precision precision_;
  Sums sums_;
  int64_t count_ = 0;
  alignas(32) double left_[block_length + 16], right_[block_length + 16];
};

// Metrics of a pair that lies in order in memory; none where they are not all finite, which is left to Python.
inline std::optional<Measured> measure(const void* actual, Kind kind, const double* expected, int64_t count,
                                       const Precision& precision) {
  const double level = root_mean_square(expected, count) + Measuring::floor(precision);
  Measuring measuring(kind, precision, level, level);
  return measuring.add(actual, expected, count) ? measuring.found(level) : std::nullopt;
}

}  // namespace nbkit
