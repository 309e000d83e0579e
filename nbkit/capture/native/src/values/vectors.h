// Four numbers at a time, in the registers that the machine has.

#pragma once

#include <cstdint>
#include <cstring>

// One function for what every machine has, and one for wider registers; what has no such choice takes the first.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define NBKIT_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define NBKIT_WIDE
#endif
#define NBKIT_INLINE inline __attribute__((always_inline))

namespace nbkit {

typedef double Doubles __attribute__((vector_size(32)));
typedef int64_t Longs __attribute__((vector_size(32)));
typedef float Floats __attribute__((vector_size(16)));

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

}  // namespace nbkit
