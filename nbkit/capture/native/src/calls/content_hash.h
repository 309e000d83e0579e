// Tells contents from each other at the speed of memory.
#pragma once

#include <cstdint>
#include <cstring>

namespace nbkit {

// Words of 8 bytes that are added at once; compilers make it what the machine has.
using Words [[gnu::vector_size(64)]] = uint64_t;

// Compiled for several kinds of CPUs, of which the best is taken where it runs.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__)
#define NBKIT_FOR_EACH_CPU __attribute__((noinline, target_clones("avx512f", "avx2", "default")))
#else
#define NBKIT_FOR_EACH_CPU
#endif

// A hash of bytes: sums of their words, and sums weighted by their places, which tell words that have moved.
NBKIT_FOR_EACH_CPU static int64_t hash_of(const char* data, size_t size) {
  Words sums{}, weighted{};
  const auto add = [&](const char* from, size_t count) __attribute__((always_inline)) {
    Words words{};
    std::memcpy(&words, from, count);
    // Floating-point numbers often differ in their highest bits alone: times a power of two, these would be lost.
    sums += words ^ words >> 32;
    weighted += sums;
  };
  const char* const end = data + size;
  for (; static_cast<size_t>(end - data) >= sizeof(Words); data += sizeof(Words)) {
    add(data, sizeof(Words));
  }
  add(data, static_cast<size_t>(end - data));
  uint64_t hash = 0;
  for (size_t lane = 0; lane < sizeof(Words) / sizeof(uint64_t); ++lane) {
    for (const uint64_t sum : {sums[lane], weighted[lane]}) {
      hash = (hash ^ sum) * 0x9E3779B97F4A7C15;
      hash ^= hash >> 32;
    }
  }
  return static_cast<int64_t>(hash);
}

}  // namespace nbkit
