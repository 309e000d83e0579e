// Rows of the ops that torch's own observer reports (ATen/record_function.h): what runs is what runs without a recording.
#pragma once

#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "calls/capturer.h"
#include "checker.h"
#include "observed_op.h"
#include "rows.h"

namespace nbkit {

// A call between its two reports.
struct ObservedCall final : at::ObserverContext {
  ObservedOp* op = nullptr;  // null of a range
  bool in_autograd = false;  // whether a kernel of autograd's runs before the op's own
  bool on_shards = false;    // whether opcheck and opcapture look at the ops that it runs on shards of DTensors, not at it
  std::optional<Call> call;  // the row; none of an op on shards
  std::optional<CheckedCall> checked;  // with opcheck
  std::optional<CapturedCall> captured;  // with opcapture
  const at::Tensor reshaped;
  int exceptions = 0;

  explicit ObservedCall(ObservedOp* op, at::Tensor reshaped = {})
      : op(op), reshaped(std::move(reshaped)), exceptions(std::uncaught_exceptions()) {}
  ~ObservedCall() override {
    if (call.has_value() || checked.has_value() || captured.has_value()) {  // its end was not reported: the recording was over by then
      const Gil gil;
      forget();
    }
  }

  // Needs the GIL.
  void forget() {
    call.reset();
    checked.reset();
    captured.reset();
  }
};

class Observed : Rows {
 public:
  // `takes_inner` records every call that torch reports, also those that composite ops and kernels make.
  // `checker` is null without opcheck, `capturer` without opcapture.
  Observed(py::object recording, py::object on_range, bool takes_inner, std::shared_ptr<Checker> checker,
           std::shared_ptr<Capturer> capturer)
      : Rows(std::move(recording)),
        on_range_(std::move(on_range)),
        takes_inner_(takes_inner),
        checker_(std::move(checker)),
        capturer_(std::move(capturer)) {}

  // Only in the thread whose optimizer steps are followed.
  std::unique_ptr<at::ObserverContext> begin_range() {
    if (!is_main_thread()) {
      return nullptr;
    }
    guarded("range not followed", [&] { on_range_(true); });
    return std::make_unique<ObservedCall>(nullptr);
  }

  // What stands for an op that begins, within a row or not; null if it is no row.
  std::unique_ptr<ObservedCall> begin_op(const at::RecordFunction& function, bool is_within) {
    ObservedOp* op = find(function);
    if (op == nullptr || op->traits.is_hidden || ((is_within || torch::autograd::get_current_node()) && is_of_a_handler())) {
      return nullptr;
    }
    Inputs inputs;
    c10::DispatchKeySet keys;
    if (!collect_all(function, op->traits, inputs, keys)) {
      return nullptr;
    }
    const auto local = c10::impl::tls_local_dispatch_key_set();
    if (local.excluded_.has(c10::DispatchKey::Python)) {
      return nullptr;  // torch.tensor() makes its tensor so: in sight of no mode, as a constant
    }
    const c10::DispatchKeySet effective = (keys | local.included_) - local.excluded_;
    if (op->passes_on(effective)) {
      return nullptr;
    }
    auto observed = begun(op, inputs, function);
    observed->in_autograd = op->is_autograds && effective.has_any(c10::autograd_dispatch_keyset);
    observed->on_shards = (checker_ != nullptr || capturer_ != nullptr) && on_shards(inputs);
    if (!observed->on_shards) {
      begin_look(*observed, function);
    }
    observed->call->start = now_ns();
    return observed;
  }

  // The same where every call is a row, below the row whose place is `around`; -1 at the top.
  std::unique_ptr<ObservedCall> begin_nested(const at::RecordFunction& function, Py_ssize_t around) {
    ObservedOp* op = find(function);
    if (op == nullptr || op->traits.is_hidden) {
      return nullptr;
    }
    Inputs inputs;
    c10::DispatchKeySet keys;
    collect_all(function, op->traits, inputs, keys);
    auto observed = begun(op, inputs, function);
    take_slot(*observed->call, around);
    observed->call->start = now_ns();
    return observed;
  }

  // The same of an op inside a row on DTensors: no row, but opcheck looks at it. Null of one that others are made of.
  std::unique_ptr<ObservedCall> begin_on_shard(const at::RecordFunction& function) {
    ObservedOp* op = find(function);
    Inputs inputs;
    c10::DispatchKeySet keys;
    if (op == nullptr || op->traits.is_hidden || !collect_all(function, op->traits, inputs, keys)) {
      return nullptr;
    }
    const auto local = c10::impl::tls_local_dispatch_key_set();
    // Else it is a DTensor still, or a fake tensor, by which torch asks for the shape of a result, and what that holds.
    const bool is_plain = std::all_of(inputs.begin(), inputs.end(), [](const Input& input) {
      return has_plain_memory(*input.tensor) && !input.tensor->is_meta();
    });
    if (!is_plain || op->passes_on((keys | local.included_) - local.excluded_)) {
      return nullptr;
    }
    auto observed = std::make_unique<ObservedCall>(op);
    begin_look(*observed, function, true);
    return observed;
  }

  void end(const at::RecordFunction& function, ObservedCall& observed, int64_t end) {
    if (observed.op == nullptr) {
      guarded("range not followed", [&] { on_range_(false); });
      return;
    }
    const OpTraits& traits = observed.op->traits;
    const bool has_failed = has_raised(observed, function);
    if (!observed.call.has_value()) {
      end_look(observed, function, has_failed);
      observed.forget();
      return;
    }
    observed.call->end = end;
    if (!takes_inner_) {
      observed.call->sequence = at::sequence_number::peek();
    }
    if (observed.reshaped.defined()) {
      guarded("metadata not read again", [&] { recording_.attr("registry").attr("forget")(observed.reshaped); });
    }
    end_look(observed, function, has_failed);
    if (has_failed) {
      fail(traits, *observed.call);
    } else {
      finish(traits, *observed.call, function.outputs());
    }
    observed.forget();
  }

 private:
  std::unique_ptr<ObservedCall> begun(ObservedOp* op, const Inputs& inputs, const at::RecordFunction& function) {
    const bool reshapes = op->traits.is_reshaping && !inputs.empty();
    auto observed = std::make_unique<ObservedCall>(op, reshapes ? *inputs[0].tensor : at::Tensor());
    observed->call = begin(inputs);
    observed->call->makes_parameters = op->is_detach;
    guarded("arguments not described", [&] {
      const auto arguments = function.inputs();
      const size_t count = op->traits.is_input.size();
      if (arguments.size() >= count) {
        const auto values = arguments.slice(arguments.size() - count);
        observed->call->arguments = op->arguments.of(op->op.schema(), op->traits, values);
      }
    });
    return observed;
  }

  void begin_look(ObservedCall& observed, const at::RecordFunction& function, bool is_on_shard = false) {
    const py::object& name = observed.op->traits.function;
    // Memory on shards is for fakes, mostly.
    if (checker_ != nullptr && !(is_on_shard && checker_->traits_of(name).is_uninitialised)) {
      guarded("not looked at: arguments unknown to the recorder", [&] {
        checker_->begin(observed.checked.emplace(observed.op->op, name, checker_->traits_of(name)), function.inputs());
      });
    }
    if (capturer_ != nullptr && !(is_on_shard && capturer_->traits_of(name).is_uninitialised)) {
      guarded("not captured: arguments unknown to the recorder", [&] {
        capturer_->begin(observed.captured.emplace(observed.op->op, name, capturer_->traits_of(name)), function.inputs());
      });
    }
  }

  void end_look(ObservedCall& observed, const at::RecordFunction& function, bool has_failed) {
    if (observed.checked.has_value() && !has_failed) {
      guarded("not looked at: results unknown to the recorder",
              [&] { checker_->end(*observed.checked, results_of(observed, function)); });
    }
    if (observed.captured.has_value()) {
      guarded("not captured: results unknown to the recorder", [&] {
        has_failed ? capturer_->fail(*observed.captured)
                   : capturer_->end(*observed.captured, results_of(observed, function));
      });
    }
  }

  // Where torch's libraries have a C++ runtime of their own, what they throw is not counted in ours; but they set no results.
  static bool has_raised(const ObservedCall& observed, const at::RecordFunction& function) {
    return function.outputs().size() < observed.op->traits.returns || std::uncaught_exceptions() > observed.exceptions;
  }

  static c10::ArrayRef<c10::IValue> results_of(const ObservedCall& observed, const at::RecordFunction& function) {
    const c10::ArrayRef<c10::IValue> stack = function.outputs();
    return stack.slice(stack.size() - observed.op->traits.returns);
  }

  static bool on_shards(const Inputs& inputs) {
    return std::any_of(inputs.begin(), inputs.end(), [](const Input& input) {
      return input.tensor->key_set().has(c10::DispatchKey::Python) &&
             python->is_dtensor(py::reinterpret_steal<py::object>(THPVariable_Wrap(*input.tensor))).cast<bool>();
    });
  }

  // The tensors that go into a call; false where torch does not tell its arguments.
  static bool collect_all(const at::RecordFunction& function, const OpTraits& traits, Inputs& inputs,
                          c10::DispatchKeySet& keys) {
    const size_t count = traits.is_input.size();
    const auto arguments = function.inputs();
    if (arguments.size() < count) {
      return false;
    }
    const auto values = arguments.slice(arguments.size() - count);
    for (size_t index = 0; index < count; ++index) {
      collect(values[index], traits.is_input[index], traits.is_result[index], inputs, keys);
    }
    return true;
  }

  static void collect(const c10::IValue& value, bool is_input, bool is_result, Inputs& inputs,
                      c10::DispatchKeySet& keys) {
    if (value.isTensor()) {
      const at::Tensor& tensor = value.toTensor();
      if (tensor.defined()) {
        keys = keys | tensor.key_set();
        if (is_input && !is_number(tensor)) {
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
  bool takes_inner_;
  std::shared_ptr<Checker> checker_;
  std::shared_ptr<Capturer> capturer_;
  ska::flat_hash_map<const char*, std::unique_ptr<ObservedOp>> ops_met_;
};

}  // namespace nbkit
