// What the process gives a recording: a clock, Python's GIL, without which a callback of torch's may come, and Python's
// frames: which line of user code led to an op, as nbkit/capture/raw/source.py finds it.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <utility>

#include "op_traits.h"

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

// Most callbacks come where Python runs, which has the GIL: to ask is cheaper than to take it again. Those of a backward
// pass come without: pybind11's own gil_scoped_acquire looks up its internals each time, which took half of the instructions.
class Gil {
  const bool is_held_ = has_gil();
  PyGILState_STATE state_ = PyGILState_UNLOCKED;

 public:
  Gil() {
    if (!is_held_) {
      state_ = PyGILState_Ensure();
    }
  }
  ~Gil() {
    if (!is_held_) {
      PyGILState_Release(state_);
    }
  }
  Gil(const Gil&) = delete;
  Gil& operator=(const Gil&) = delete;
};

// Whether an error is Ctrl-C. What reaches work of ours is the step's: PyErr_SetInterrupt() brings it again where Python runs
// next, and so comes last.
inline bool is_interrupt(const std::exception& error) {
  const auto* in_python = dynamic_cast<const py::error_already_set*>(&error);
  return in_python != nullptr && in_python->matches(PyExc_KeyboardInterrupt);
}

inline PyFrameObject* outer_of(PyFrameObject* frame) {
  PyFrameObject* outer = PyFrame_GetBack(frame);
  Py_DECREF(frame);
  return outer;
}

// Borrowed: the frame holds it.
inline PyObject* code_of(PyFrameObject* frame) {
  PyCodeObject* code = PyFrame_GetCode(frame);
  Py_DECREF(code);
  return reinterpret_cast<PyObject*>(code);
}

inline bool is_engine(PyFrameObject* frame) { return code_of(frame) == python->engine_code.ptr(); }

// Whose code is, as nbkit/capture/raw/source.py has it.
constexpr int library_code = 1, own_code = 2;

inline int code_kind(PyObject* code) {
  // Each code is held, as its address stands for it.
  static auto& known = *new std::unordered_map<PyObject*, int>();
  auto found = known.find(code);
  if (found == known.end()) {
    const int kind = python->code_kind(py::handle(code)).cast<int>();
    Py_INCREF(code);
    found = known.emplace(code, kind).first;
  }
  return found->second;
}

constexpr int most_frames = std::numeric_limits<int>::max();

// The innermost frame of such code, or of a later kind, among so many from `frame` on, which is taken; null if there is none.
inline PyFrameObject* frame_of(PyFrameObject* frame, int least, int most = most_frames) {
  while (frame != nullptr && code_kind(code_of(frame)) < least) {
    frame = outer_of(frame);
    if (--most == 0) {
      Py_CLEAR(frame);
    }
  }
  return frame;
}

// The same of user code, a new reference.
inline PyFrameObject* user_frame(int most = most_frames) {
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  return frame_of(frame, library_code, most);
}

// Code and instruction of a frame, one object for each place; takes the frame.
inline py::object location_of(PyFrameObject* frame) {
  static auto& known = *new std::unordered_map<PyObject*, std::unordered_map<int, py::object>>();
  PyObject* code = code_of(frame);  // held, as one that code_kind() has seen
  const int instruction = PyFrame_GetLasti(frame);
  py::object& location = known[code][instruction];
  if (!location) {
    location = py::make_tuple(py::handle(code), instruction);
  }
  Py_DECREF(frame);
  return location;
}

// Where the innermost user code stands, None without; of a library's with the user's own place above it, as op_location().
// Each is held for good.
inline py::object place_of_op(int most = most_frames) {
  static auto& known = *new std::unordered_map<PyObject*, std::unordered_map<PyObject*, py::object>>();
  PyFrameObject* frame = user_frame(most);
  if (frame == nullptr) {
    return py::none();
  }
  if (code_kind(code_of(frame)) == own_code) {
    return location_of(frame);
  }
  Py_INCREF(frame);
  PyFrameObject* outer = frame_of(frame, own_code);
  const py::object place = location_of(frame);
  const py::object own = outer == nullptr ? py::none() : location_of(outer);
  py::object& location = known[place.ptr()][own.ptr()];  // both are held: by location_of()
  if (!location) {
    location = py::make_tuple(place[py::int_(0)], place[py::int_(1)], own);
  }
  return location;
}

// The same of an op that an autograd node runs; None where the engine runs the node, not a custom Function or a hook.
inline py::object node_location() {
  PyFrameObject* frame = PyEval_GetFrame();
  if (frame == nullptr || is_engine(frame)) {
    return py::none();
  }
  return python->node_location(py::handle(reinterpret_cast<PyObject*>(frame)));
}

// Whether an op comes from the Python code of a dispatch mode or of a tensor subclass. Autograd asks for a detach()
// there without a report of torch's: it is no row, so what it is made of is none either.
inline bool is_of_a_handler() {
  static PyObject* const handler = PyUnicode_InternFromString("__torch_dispatch__");
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  bool is_found = false;
  while (frame != nullptr && !is_found && !is_engine(frame)) {
    const auto* code = reinterpret_cast<PyCodeObject*>(code_of(frame));
    is_found = PyUnicode_Compare(code->co_name, handler) == 0;
    frame = outer_of(frame);
  }
  Py_XDECREF(frame);
  return is_found;
}

}  // namespace nbkit
