// Rows of the ops that torch's own observer reports (ATen/record_function.h): what runs is what runs without a recording.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <exception>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "rows.h"

namespace nbkit {

const c10::DispatchKeySet functorch_keys({c10::DispatchKey::FuncTorchDynamicLayerFrontMode,
                                          c10::DispatchKey::FuncTorchDynamicLayerBackMode,
                                          c10::DispatchKey::FuncTorchGradWrapper,
                                          c10::DispatchKey::FuncTorchBatched,
                                          c10::DispatchKey::FuncTorchBatchedDecomposition});

// An op, and how it comes to the kernel that is a row: through its own kernel, or as other ops that are made of it.
struct ObservedOp {
  c10::OperatorHandle op;
  const OpTraits& traits;
  bool is_composite, is_detach, is_autograds;
  std::unordered_map<uint64_t, bool> passes;  // by the keys of a call

  explicit ObservedOp(const c10::OperatorHandle& op)
      : op(op),
        traits(traits_of(op)),
        is_composite(op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)),
        is_detach(op.operator_name().name == "aten::detach"),
        is_autograds(op.hasKernelForDispatchKey(c10::DispatchKey::Autograd)) {}

  // Whether a call only calls other ops, which are rows of their own, before any kernel of its own runs.
  bool passes_on(c10::DispatchKeySet keys) {
    auto found = passes.find(keys.raw_repr());
    if (found == passes.end()) {
      found = passes.emplace(keys.raw_repr(), decide(keys)).first;
    }
    return found->second;
  }

 private:
  bool decide(c10::DispatchKeySet keys) const {
    // A transform of torch.func calls it again on the tensors inside of those that it wraps.
    if (keys.has_any(functorch_keys)) {
      return true;
    }
    // Autocast casts the arguments and calls the op again.
    for (const c10::DispatchKey key : keys & c10::autocast_dispatch_keyset) {
      if (op.hasKernelForDispatchKey(key)) {
        return true;
      }
    }
    if (!is_composite) {
      return false;
    }
    for (const c10::DispatchKey key : keys) {
      const bool is_kernel = c10::isBackendDispatchKey(key) || c10::isIncludedInAlias(key, c10::DispatchKey::Autograd);
      if (is_kernel && op.hasKernelForDispatchKey(key)) {
        return false;
      }
    }
    return true;  // torch prefers it to a kernel for all of autograd
  }
};

// A call between its two reports.
struct ObservedCall final : at::ObserverContext {
  ObservedOp* op = nullptr;  // null of a range
  bool in_autograd = false;  // whether a kernel of autograd's runs before the op's own
  std::optional<Call> call;
  const at::Tensor reshaped;
  int exceptions = 0;

  explicit ObservedCall(ObservedOp* op, at::Tensor reshaped = {})
      : op(op), reshaped(std::move(reshaped)), exceptions(std::uncaught_exceptions()) {}
  ~ObservedCall() override {
    if (call.has_value()) {  // its end was not reported: the recording was over by then
      py::gil_scoped_acquire gil;
      call.reset();
    }
  }
};

class Observed : Rows {
 public:
  Observed(py::object recording, py::object on_range) : Rows(std::move(recording)), on_range_(std::move(on_range)) {}

  std::unique_ptr<at::ObserverContext> begin_range() {
    guarded("range not followed", [&] { on_range_(true); });
    return std::make_unique<ObservedCall>(nullptr);
  }

  // What stands for an op that begins, within a row or not; null if it is no row.
  std::unique_ptr<ObservedCall> begin_op(const at::RecordFunction& function, bool is_within) {
    ObservedOp* op = find(function);
    if (op == nullptr || op->traits.is_hidden || ((is_within || torch::autograd::get_current_node()) && is_of_a_handler())) {
      return nullptr;
    }
    const size_t count = op->traits.is_input.size();
    const auto arguments = function.inputs();
    if (arguments.size() < count) {
      return nullptr;
    }
    const auto values = arguments.slice(arguments.size() - count);
    Inputs inputs;
    c10::DispatchKeySet keys;
    for (size_t index = 0; index < count; ++index) {
      collect(values[index], op->traits.is_input[index], op->traits.is_result[index], inputs, keys);
    }
    const auto local = c10::impl::tls_local_dispatch_key_set();
    if (local.excluded_.has(c10::DispatchKey::Python)) {
      return nullptr;  // torch.tensor() makes its tensor so: in sight of no mode, as a constant
    }
    const c10::DispatchKeySet effective = (keys | local.included_) - local.excluded_;
    if (op->passes_on(effective)) {
      return nullptr;
    }
    const bool reshapes = op->traits.is_reshaping && !inputs.empty();
    auto observed = std::make_unique<ObservedCall>(op, reshapes ? *inputs[0].tensor : at::Tensor());
    observed->in_autograd = op->is_autograds && effective.has_any(c10::autograd_dispatch_keyset);
    observed->call = begin(inputs);
    observed->call->makes_parameters = op->is_detach;
    observed->call->start = now_ns();
    return observed;
  }

  void end(const at::RecordFunction& function, ObservedCall& observed, int64_t end) {
    if (observed.op == nullptr) {
      guarded("range not followed", [&] { on_range_(false); });
      return;
    }
    const OpTraits& traits = observed.op->traits;
    observed.call->end = end;
    observed.call->sequence = at::sequence_number::peek();
    if (observed.reshaped.defined()) {
      guarded("metadata not read again", [&] { recording_.attr("registry").attr("forget")(observed.reshaped); });
    }
    if (std::uncaught_exceptions() > observed.exceptions) {
      fail(traits, *observed.call, "");
    } else {
      finish(traits, *observed.call, function.outputs());
    }
    observed.call.reset();
  }

 private:
  static void collect(const c10::IValue& value, bool is_input, bool is_result, Inputs& inputs,
                      c10::DispatchKeySet& keys) {
    if (value.isTensor()) {
      const at::Tensor& tensor = value.toTensor();
      if (tensor.defined()) {
        keys = keys | tensor.key_set();
        // A number that torch has wrapped for its own use reaches Python as a number.
        if (is_input && !tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
          inputs.push_back({&tensor, is_result});
        }
      }
    } else if (value.isTensorList() || value.isList()) {
      for (const c10::IValue& item : value.toListRef()) {
        if (item.isInt() || item.isDouble()) {
          break;  // sizes and scales
        }
        collect(item, is_input, is_result, inputs, keys);
      }
    }
  }

  // By the address of the name in the op's schema; null of what is no op.
  ObservedOp* find(const at::RecordFunction& function) {
    auto found = ops_met_.find(function.name());
    if (found == ops_met_.end()) {
      std::unique_ptr<ObservedOp> op;
      if (const auto name = function.operator_name()) {
        if (const auto handle = c10::Dispatcher::singleton().findSchema(*name)) {
          op = std::make_unique<ObservedOp>(*handle);
        }
      }
      if (op == nullptr) {
        return nullptr;
      }
      found = ops_met_.emplace(function.name(), std::move(op)).first;
    }
    return found->second.get();
  }

  py::object on_range_;
  std::unordered_map<const char*, std::unique_ptr<ObservedOp>> ops_met_;
};

}  // namespace nbkit
