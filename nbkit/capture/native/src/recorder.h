// The hot path of OpMode (nbkit/capture/recorder/dispatch_mode.py) in C++: it records ops of the plain, common kind into
// the same Python lists, and leaves every other op to the Python recorder, which is the reference for what a row holds.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/utils/torch_dispatch_mode.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "checker.h"
#include "rows.h"

namespace nbkit {

using torch::jit::Stack;

// The keys of this thread, with those that resolve a lazy conj() and neg() in force, as in
// nbkit/capture/raw/conj_neg.py, at no cost.
inline c10::impl::LocalDispatchKeySet with_conj_neg_resolved() {
  c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  keys.excluded_ = keys.excluded_ - c10::DispatchKeySet({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative});
  return keys;
}

class Recorder : Rows {
 public:
  Recorder(py::object recording, std::shared_ptr<Checker> checker)
      : Rows(std::move(recording)), checker_(std::move(checker)) {}

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

  std::shared_ptr<Checker> checker_;  // null without opcheck
};

}  // namespace nbkit
