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
  long closure_code;          // of a recording inside of an optimizer's closure
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
    Py_ssize_t slot;
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
                      Py_ssize_t& slot) {
    const py::object outer = attribute(thread, parent_name), context = attribute(thread, context_name);
    const py::object location = user_location();
    slot = reserve(ops_);
    enter(thread, context, slot);
    const py::int_ sequence(at::sequence_number::peek());
    const int64_t start = now_ns();
    PyObject* out = handed_on(function, args, kwargs);
    const int64_t end = now_ns();
    {
      const py::error_scope raised;
      if (out == nullptr) {
        guarded("error not described", [&] { fail(slot); });
      }
      set(thread, parent_name, outer);
      set(thread, context_name, context);
      const bool is_kept = out == nullptr || THPVariable_Check(out);
      put(slot, {py::reinterpret_borrow<py::object>(function), context, sequence, py::int_(-1), py::bool_(is_kept),
                 py::int_(start), py::int_(end), location, py::int_(-1), py::int_(0), py::int_(0), py::none()});
    }
    if (out == nullptr) {
      throw py::error_already_set();
    }
    return py::reinterpret_steal<py::object>(out);
  }

  // The call is the parent of what runs now.
  void enter(const py::object& thread, const py::object& context, Py_ssize_t slot) {
    static PyObject* const code = PyUnicode_InternFromString("code");
    const py::int_ number(slot);
    set(thread, parent_name, number);
    if (PyLong_AsLong(attribute(recording_, code).ptr()) == kinds_.closure_code) {
      recording_.attr("update_context")(thread);
    } else {
      set(thread, context_name, with_parent(context, number));
    }
  }

  // An op inside it that raised stands after it; one before it raised an error that was caught.
  void fail(Py_ssize_t slot) {
    const py::object before = recording_.attr("failed_slot");
    if (before.is_none() || before.cast<Py_ssize_t>() < slot) {
      recording_.attr("failed_slot") = slot;
    }
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

  static void set(const py::object& object, PyObject* name, const py::object& value) {
    if (PyObject_SetAttr(object.ptr(), name, value.ptr()) != 0) {
      throw py::error_already_set();
    }
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
