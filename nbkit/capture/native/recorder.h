// The hot path of OpMode (nbkit/capture/recorder/dispatch_mode.py) in C++: it records ops of the plain, common kind into
// the same Python lists, and leaves every other op to the Python recorder, which is the reference for what a row holds.
#pragma once

#include <ATen/SequenceNumber.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/utils/torch_dispatch_mode.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "checker.h"
#include "clock.h"
#include "op_traits.h"
#include "tensors.h"

namespace nbkit {

using torch::jit::Stack;

// The keys of this thread, with those that resolve a lazy conj() and neg() in force, as in
// nbkit/capture/raw/conj_neg.py, at no cost.
inline c10::impl::LocalDispatchKeySet with_conj_neg_resolved() {
  c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  keys.excluded_ = keys.excluded_ - c10::DispatchKeySet({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative});
  return keys;
}

struct Input {
  const at::Tensor* tensor;
  bool is_result;
};
using Inputs = c10::SmallVector<Input, 16>;

// One call: what is known of it before it runs. Fields as in OpRecord, nbkit/capture/raw/recording.py.
struct Call {
  py::object context, tensors, node = py::int_(-1), node_type = py::none(), location = py::none();
  size_t first = 0, inputs = 0;
  uint64_t sequence = 0;
  int64_t start = 0, end = 0;
  std::vector<py::object> results;
};

class Recorder {
 public:
  Recorder(py::object recording, std::shared_ptr<Checker> checker)
      : recording_(std::move(recording)),
        main_(recording_.attr("main")),
        main_tensors_(main_.attr("tensors")),
        ops_(recording_.attr("ops")),
        number_in_python_(recording_.attr("registry").attr("number")),
        tensors_(recording_.attr("registry").attr("tensors").cast<std::shared_ptr<Tensors>>()),
        checker_(std::move(checker)) {}

  // Runs and records an op; false, with nothing done, if it is one for the Python recorder. Needs the GIL.
  bool record(const c10::OperatorHandle& op, Stack* stack) {
    const OpTraits& traits = traits_of(op);
    Inputs inputs;
    if (!traits.is_ours || !collect_all(traits, *stack, inputs)) {
      return false;
    }
    // As torch does for a mode in Python: it is off while the op runs, and while we ask Python about tensors.
    torch::torch_dispatch_mode::StashTorchDispatchModeGuard mode_off;
    Call call = begin(inputs);
    std::optional<CheckedCall> checked;
    if (checker_ != nullptr) {
      begin_check(checked, op, traits, *stack);
    }
    c10::impl::ForceDispatchKeyGuard resolving(with_conj_neg_resolved());
    try {
      py::gil_scoped_release no_gil;
      call.start = now_ns();
      op.callBoxed(stack);
      call.end = now_ns();
      if (checked.has_value()) {
        Checker::look(*checked, *stack);
      }
    } catch (const c10::Error& error) {
      fail(traits, call, error.what_without_backtrace());  // what() would look up the names of all C++ frames
      throw;
    } catch (...) {
      fail(traits, call, "");
      throw;
    }
    if (checked.has_value()) {
      settle(traits, call, *checked, *stack);
    }
    finish(traits, call, *stack);
    return true;
  }

 private:
  static bool collect_all(const OpTraits& traits, const Stack& stack, Inputs& inputs) {
    const size_t count = traits.is_input.size(), first = stack.size() - count;
    for (size_t index = 0; index < count; ++index) {
      if (traits.is_input[index] && !collect(stack[first + index], traits.is_result[index], inputs)) {
        return false;
      }
    }
    return true;
  }

  static bool collect(const c10::IValue& value, bool is_result, Inputs& inputs) {
    if (value.isTensor()) {
      const at::Tensor& tensor = value.toTensor();
      // A number that torch has wrapped for its own use reaches Python as a number.
      if (tensor.defined() && !tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
        inputs.push_back({&tensor, is_result});
        return is_plain(tensor);
      }
    } else if (value.isTensorList() || value.isList()) {
      for (const c10::IValue& item : value.toListRef()) {
        if (item.isInt() || item.isDouble()) {
          break;  // sizes and scales
        }
        if (!collect(item, is_result, inputs)) {
          return false;
        }
      }
    }
    return true;
  }

  Call begin(const Inputs& inputs) {
    static PyObject* const context = PyUnicode_InternFromString("context");
    Call call;
    call.context = attribute(main_, context);
    call.tensors = main_tensors_;
    guarded("place not described", [&] { stand(call, context); });
    call.first = PyList_GET_SIZE(call.tensors.ptr());
    append_all(call.tensors, "inputs not described", [&] {
      for (const Input& input : inputs) {
        const py::object& number = tensors_->number(*input.tensor, false);
        append(call.tensors, number);
        if (input.is_result) {
          call.results.push_back(number);
        }
      }
    });
    call.inputs = PyList_GET_SIZE(call.tensors.ptr()) - call.first;
    call.sequence = at::sequence_number::peek();
    return call;
  }

  // Where the call stands: its thread, autograd node and source line, as the Python recorder finds them.
  void stand(Call& call, PyObject* context) {
    static PyObject* const parent = PyUnicode_InternFromString("parent");
    const auto node = torch::autograd::get_current_node();
    if (node) {
      const NodeKind kind = kind_of(*node);
      call.node_type = kind.type;
      call.node = kind.accumulates
                      ? number(static_cast<const torch::autograd::AccumulateGrad&>(*node).variable, false)
                      : py::int_(node->sequence_nr());
      auto* frame = PyEval_GetFrame();
      if (frame != nullptr && is_engine(frame)) {
        return;
      }
      // One of autograd's threads for a device, which runs no Python; or a custom Function, a hook.
      py::object thread = recording_.attr("thread")();
      call.context = attribute(thread, context);
      call.tensors = thread.attr("tensors");
      call.location = location_of(python->node_location);
    } else if (PyLong_AsLong(attribute(main_, parent).ptr()) < 0) {
      call.location = location_of(python->user_location);
    }
  }

  static py::object location_of(const py::object& find) {
    auto* frame = PyEval_GetFrame();
    return frame == nullptr ? py::none() : find(py::handle(reinterpret_cast<PyObject*>(frame)));
  }

  static bool is_engine(PyFrameObject* frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    Py_DECREF(code);  // the frame holds it
    return reinterpret_cast<PyObject*>(code) == python->engine_code.ptr();
  }

  py::object number(const at::Tensor& tensor, bool fresh) {
    return is_plain(tensor) ? tensors_->number(tensor, fresh) : number_in_python_(tensor, fresh);
  }

  void begin_check(std::optional<CheckedCall>& checked, const c10::OperatorHandle& op, const OpTraits& traits, const Stack& stack) {
    try {
      checker_->begin(checked.emplace(op, traits.function, checker_->traits_of(traits.function)), stack);
    } catch (const py::error_already_set&) {
      throw;
    } catch (const std::exception&) {
      checked.reset();
      recording_.attr("skip")("not looked at: arguments unknown to the recorder");
    }
  }

  // What the check raises in Python is the error of this op.
  void settle(const OpTraits& traits, Call& call, const CheckedCall& checked, const Stack& stack) {
    try {
      checker_->settle(checked, stack);
    } catch (const py::error_already_set& error) {
      fail(traits, call, py::str(error.value()).cast<std::string>().c_str());
      throw;
    } catch (const std::exception&) {
      recording_.attr("skip")("not looked at: results unknown to the recorder");
    }
  }

  void finish(const OpTraits& traits, Call& call, const Stack& stack) {
    const size_t middle = call.first + call.inputs;
    append_all(call.tensors, "outputs not described", [&] {
      for (const py::object& result : call.results) {
        append(call.tensors, result);
      }
      for (size_t index = stack.size() - traits.returns; index < stack.size(); ++index) {
        note(call, stack[index]);
      }
    });
    write(traits, call, PyList_GET_SIZE(call.tensors.ptr()) - middle);
  }

  void note(Call& call, const c10::IValue& value) {
    if (value.isTensor()) {
      if (value.toTensor().defined()) {
        append(call.tensors, number(value.toTensor(), true));
      }
    } else if (value.isList()) {
      for (const c10::IValue& item : value.toListRef()) {
        note(call, item);
      }
    }
  }

  void fail(const OpTraits& traits, Call& call, const char* message) {
    py::error_scope raised;  // an error of Python's may be on its way
    call.end = now_ns();
    guarded("error not described", [&] {
      recording_.attr("failed_slot") = PyList_GET_SIZE(ops_.ptr());
      recording_.attr("failed_message") = py::str(message);
    });
    write(traits, call, 0);
  }

  void write(const OpTraits& traits, const Call& call, size_t outputs) {
    append_all(ops_, "row not written", [&] {
      append(ops_, traits.function);
      append(ops_, call.context);
      append(ops_, py::int_(call.sequence));
      append(ops_, call.node);
      append(ops_, call.node_type);
      append(ops_, py::int_(call.start));
      append(ops_, py::int_(call.end));
      append(ops_, call.location);
      append(ops_, py::int_(call.first));
      append(ops_, py::int_(call.inputs));
      append(ops_, py::int_(outputs));
    });
  }

  // Work that appends to a list; on trouble nothing of it stays.
  template <typename Work>
  void append_all(const py::object& list, const char* what, const Work& work) {
    const Py_ssize_t before = PyList_GET_SIZE(list.ptr());
    if (!guarded(what, work)) {
      PyList_SetSlice(list.ptr(), before, PyList_GET_SIZE(list.ptr()), nullptr);
    }
  }

  // The recorder's own trouble must never become the step's.
  template <typename Work>
  bool guarded(const char* what, const Work& work) {
    try {
      work();
      return true;
    } catch (const std::exception&) {
      PyErr_Clear();
      try {
        recording_.attr("skip")(what);
      } catch (const std::exception&) {
        PyErr_Clear();
      }
      return false;
    }
  }

  py::object recording_, main_, main_tensors_, ops_;
  py::object number_in_python_;
  std::shared_ptr<Tensors> tensors_;
  std::shared_ptr<Checker> checker_;  // null without opcheck
};

}  // namespace nbkit
