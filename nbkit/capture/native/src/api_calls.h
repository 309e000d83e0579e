// Rows of API calls (torch.nn.functional.linear, torch.Tensor.add_), parents of the ops that they run: what ApiMode in
// nbkit/capture/step/function_mode.py does in Python.
#pragma once

#include <torch/csrc/autograd/python_variable.h>

#include <frameobject.h>

#include <memory>
#include <string>
#include <utility>

#include "rows.h"

namespace nbkit {

// What Python tells of the calls that it hands on.
struct ApiKinds {
  py::object method_wrapper;  // the type of calls that get or set a property: x.shape, x.grad = y
  py::object gradient;        // the property that may be set without a change of the tensor itself
  py::object op_overload;     // the type of ops; one that a recorder runs came from no API call
  py::object capture;         // the folder in which the code of recorders stands
  py::object resetting;       // after these a tensor is no longer what was noted of it
  py::object watched;         // by function, what is told of each result
};

class ApiCalls : Rows {
 public:
  ApiCalls(py::object recording, ApiKinds kinds) : Rows(std::move(recording)), kinds_(std::move(kinds)) {}

  size_t getters() const { return getters_; }

  // Runs a call that torch hands to the mode. Raises what it raises.
  py::object run(py::handle function, const py::tuple& args, const py::object& kwargs) {
    if (is_of(function, kinds_.method_wrapper)) {
      ++getters_;
      if (is_setter(function)) {
        forget(args);
      }
      return called(function, args, kwargs);
    }
    if (is_of(function, kinds_.op_overload) && is_called_by_a_recorder()) {
      return called(function.attr("_op"), args, kwargs);
    }
    const py::object thread = is_main_thread() ? main_ : recording_.attr("thread")();
    size_t slot;
    py::object out = recorded(thread, function, args, kwargs, slot);
    if (contains(kinds_.resetting, function)) {
      forget(args);
    }
    if (PyDict_GET_SIZE(kinds_.watched.ptr()) > 0) {
      if (const py::handle look = PyDict_GetItemWithError(kinds_.watched.ptr(), function.ptr())) {
        look(out, slot, thread.attr("module_call"));
      } else if (PyErr_Occurred() != nullptr) {
        throw py::error_already_set();
      }
    }
    return out;
  }

 private:
  py::object recorded(const py::object& thread, py::handle function, const py::tuple& args, const py::object& kwargs,
                      size_t& slot) {
    const py::object outer = slots_.parent.of(thread), context = slots_.context.of(thread);
    const py::object location = place_of_op();
    slot = ops_->reserve();
    slots_.parent.set(thread, py::int_(slot));  // of what runs now
    if (slots_.in_closure.borrowed(thread).ptr() == Py_True) {
      recording_.attr("update_context")(thread);
    }
    const auto sequence = static_cast<int64_t>(at::sequence_number::peek());
    const int64_t start = now_ns();
    PyObject* out = handed_on(function, args, kwargs);
    const int64_t end = now_ns();
    {
      const py::error_scope raised;
      if (out == nullptr) {
        guarded("error not described", [&] { note_failed(static_cast<int64_t>(slot)); });
      }
      // The end of a range may have ended the step of an optimizer around it.
      if (slots_.parent_of(thread) == static_cast<int64_t>(slot)) {
        slots_.parent.set(thread, outer);
        slots_.context.set(thread, context);
      }
      const bool is_kept = out == nullptr || THPVariable_Check(out);
      ops_->at(slot) = {{py::reinterpret_borrow<py::object>(function), context, py::bool_(is_kept), location, {}},
                        {PyLong_AsLongLong(outer.ptr()), sequence, -1, start, end, -1, 0, out == nullptr ? -1 : 0}};
    }
    if (out == nullptr) {
      throw py::error_already_set();
    }
    return py::reinterpret_steal<py::object>(out);
  }

  void forget(const py::tuple& args) { recording_.attr("registry").attr("forget")(args[0]); }

  bool is_setter(py::handle function) const {
    static PyObject* const name = PyUnicode_InternFromString("__name__");
    const py::object given = attribute(py::reinterpret_borrow<py::object>(function), name);
    return PyUnicode_CompareWithASCIIString(given.ptr(), "__set__") == 0 &&
           !py::object(function.attr("__self__")).is(kinds_.gradient);
  }

  bool is_called_by_a_recorder() const {
    PyFrameObject* frame = PyEval_GetFrame();
    if (frame == nullptr) {
      return false;
    }
    const auto* code = reinterpret_cast<PyCodeObject*>(code_of(frame));
    return PyUnicode_Tailmatch(code->co_filename, kinds_.capture.ptr(), 0, PY_SSIZE_T_MAX, -1) == 1;
  }

  static bool is_of(py::handle object, const py::object& type) {
    return reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())) == type.ptr();
  }

  static bool contains(const py::object& functions, py::handle function) {
    const int found = PySet_Contains(functions.ptr(), function.ptr());
    if (found < 0) {
      throw py::error_already_set();
    }
    return found == 1;
  }

  // Runs the call; null where it raised. By a frame of ours nbkit/capture/step/tracebacks.py knows the step's own errors.
  PyObject* handed_on(py::handle function, const py::tuple& args, const py::object& kwargs) const {
    PyObject* out = PyObject_Call(function.ptr(), args.ptr(), kwargs.ptr());
    if (out == nullptr) {
      add_frame(__LINE__ - 2);
    }
    return out;
  }

  void add_frame(int line) const {
    static PyObject* const globals = PyDict_New();
    PyFrameObject* frame = nullptr;
    {
      const py::error_scope raised;
      const std::string file = kinds_.capture.cast<std::string>() + "native/src/api_calls.h";
      if (PyCodeObject* code = PyCode_NewEmpty(file.c_str(), "__torch_function__", line)) {
        frame = PyFrame_New(PyThreadState_Get(), code, globals, nullptr);
        Py_DECREF(code);
      }
      PyErr_Clear();
    }
    if (frame != nullptr) {
      PyTraceBack_Here(frame);
      Py_DECREF(frame);
    }
  }

  py::object called(py::handle function, const py::tuple& args, const py::object& kwargs) const {
    PyObject* out = handed_on(function, args, kwargs);
    if (out == nullptr) {
      throw py::error_already_set();
    }
    return py::reinterpret_steal<py::object>(out);
  }

  ApiKinds kinds_;
  size_t getters_ = 0;
};

constexpr const char* api_calls_capsule = "nbkit.ApiCalls";

// __torch_function__(mode, function, types, args=(), kwargs=None), which torch calls thousands of times a step: a plain
// C function costs less than one of pybind11.
inline PyObject* torch_function(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  if (count < 3 || count > 5) {
    PyErr_SetString(PyExc_TypeError, "__torch_function__ takes a mode, a function, types, args and kwargs");
    return nullptr;
  }
  auto& calls = *static_cast<std::shared_ptr<ApiCalls>*>(PyCapsule_GetPointer(self, api_calls_capsule));
  try {
    const py::handle args = count > 3 ? given[3] : nullptr, kwargs = count > 4 ? given[4] : nullptr;
    const bool has_kwargs = kwargs && !kwargs.is_none() && PyObject_Size(kwargs.ptr()) > 0;
    return calls
        ->run(given[1], args ? py::tuple(py::reinterpret_borrow<py::object>(args)) : py::tuple(),
              has_kwargs ? py::object(py::dict(py::reinterpret_borrow<py::object>(kwargs))) : py::object())
        .release()
        .ptr();
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

// The function that ApiMode takes as its method __torch_function__.
inline py::object function_of(std::shared_ptr<ApiCalls> calls) {
  static PyMethodDef method = {"__torch_function__",
                               reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&torch_function)),
                               METH_FASTCALL, nullptr};
  auto* held = new std::shared_ptr<ApiCalls>(std::move(calls));
  const auto capsule = py::reinterpret_steal<py::object>(PyCapsule_New(held, api_calls_capsule, [](PyObject* object) {
    delete static_cast<std::shared_ptr<ApiCalls>*>(PyCapsule_GetPointer(object, api_calls_capsule));
  }));
  return py::reinterpret_steal<py::object>(PyCFunction_New(&method, capsule.ptr()));
}

}  // namespace nbkit
