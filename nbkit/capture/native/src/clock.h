// The clock of a recording: that of Python's time.perf_counter_ns().
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

namespace nbkit {

inline int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

using Span = std::pair<int64_t, int64_t>;  // start and end

}  // namespace nbkit
