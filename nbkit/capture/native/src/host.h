// What the process gives a recording: a clock, and Python's GIL, without which a callback of torch's may come.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

namespace nbkit {

namespace py = pybind11;

// That of Python's time.perf_counter_ns().
inline int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

using Span = std::pair<int64_t, int64_t>;  // start and end

// PyGILState_Check() says yes to everybody once there was a subinterpreter.
inline bool has_gil() {
#if PY_VERSION_HEX >= 0x030D0000
  PyThreadState* running = PyThreadState_GetUnchecked();
#else
  PyThreadState* running = _PyThreadState_UncheckedGet();
#endif
  return running != nullptr && running == PyGILState_GetThisThreadState();
}

// Most callbacks come where Python runs, which has the GIL: to ask is cheaper than to take it again.
class Gil {
  std::optional<py::gil_scoped_acquire> taken_;

 public:
  Gil() {
    if (!has_gil()) {
      taken_.emplace();
    }
  }
};

}  // namespace nbkit
