// opcheck's look at the ops that torch's observer reports: the usual case is settled here, all others by the Checker in Python
// (nbkit/capture/check/checker.py), which is the reference for what is found.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "host.h"
#include "values/magnitudes.h"
#include "python_call.h"
#include "tensors.h"

namespace nbkit {

// What is the same at every call of an op; from Checker.describe() in Python.
struct CheckTraits {
  py::object leave_out;  // why its results are not looked at; None if they are
  bool is_uninitialised, asks_before, is_random, is_cast, may_wrap;
  std::vector<size_t> written;  // arguments it writes to
};

// One call: its arguments as they went in, and what was found. Tensors are those of `arguments` and of the stack.
struct CheckedCall {
  using Arguments = c10::SmallVector<c10::IValue, 12>;
  using Found = c10::SmallVector<const at::Tensor*, 4>;
  CheckedCall(const c10::OperatorHandle& op, const py::object& function, const CheckTraits& traits)
      : op(op), function(function), traits(traits) {}

  const c10::OperatorHandle& op;
  const py::object& function;
  const CheckTraits& traits;
  Arguments arguments;
  Found written, made;  // `made`: those with values to look at
  bool was_finite = true, is_usual = true;
  int64_t ran = 0;
};

// What is known of the memory that the ops have written to; as Memory in Python.
class Memory {
 public:
  explicit Memory(std::shared_ptr<Tensors> tensors) : tensors_(std::move(tensors)) {}

  void note(const at::Tensor& tensor, bool is_finite) {
    if (tensor.has_storage()) {
      tensors_->storage_of(tensor.storage(), tensor.device()).is_finite = is_finite;
    }
  }

  std::optional<bool> was_finite(const at::Tensor& tensor) const {
    const auto* known = tensor.has_storage() ? tensors_->known_storage(tensor.storage()) : nullptr;
    return known == nullptr ? std::nullopt : known->is_finite;
  }

 private:
  std::shared_ptr<Tensors> tensors_;
};

class Checker {
 public:
  Checker(Memory memory, const py::object& checker)
      : memory_(std::move(memory)),
        describe_(checker.attr("describe")),
        ask_about_(checker.attr("ask_about")),
        look_at_(checker.attr("look_at")) {}

  const CheckTraits& traits_of(const py::object& function) {
    static auto& known = *new std::unordered_map<PyObject*, CheckTraits>();
    auto found = known.find(function.ptr());
    if (found == known.end()) {
      auto [leave_out, is_uninitialised, asks_before, is_random, is_cast, may_wrap, written] =
          describe_(function).cast<std::tuple<py::object, bool, bool, bool, bool, bool, std::vector<size_t>>>();
      CheckTraits traits{leave_out, is_uninitialised, asks_before, is_random, is_cast, may_wrap, written};
      found = known.emplace(function.ptr(), std::move(traits)).first;
    }
    return found->second;
  }

  // Before an op runs: whether what it is about to write to was finite.
  void begin(CheckedCall& call, c10::ArrayRef<const c10::IValue> arguments) {
    const CheckTraits& traits = call.traits;
    if (!traits.leave_out.is_none()) {
      ++left_out_[traits.leave_out.ptr()];
      return;
    }
    call.arguments.append(arguments.end() - call.op.schema().arguments().size(), arguments.end());
    for (size_t index : traits.written) {
      each_tensor(call.arguments[index], [&](const at::Tensor& tensor) { call.written.push_back(&tensor); });
    }
    if (traits.asks_before) {
      call.was_finite = ask(call);
    }
  }

  // After it ran. Keeps what was found; with what is out of the usual Python goes on.
  void end(CheckedCall& call, c10::ArrayRef<c10::IValue> results) {
    call.ran = now_ns();
    if (call.traits.leave_out.is_none()) {
      for (const c10::IValue& result : results) {
        each_tensor(result, [&](const at::Tensor& tensor) { look(call, tensor); });
      }
      for (const at::Tensor* tensor : call.written) {
        if (std::none_of(call.made.begin(), call.made.end(), [&](auto* one) { return one->is_same(*tensor); })) {
          look(call, *tensor);
        }
      }
      // A number that an integer does not hold leaves neither NaN nor Inf.
      call.is_usual &= !call.traits.is_cast || results.size() != 1 || !results[0].isTensor() ||
                       !at::isIntegralType(results[0].toTensor().scalar_type(), false) || !has_numbers(call.arguments);
      call.is_usual &= !call.traits.may_wrap || results.size() != 1 || !results[0].isTensor() ||
                       !is_narrow(results[0].toTensor());
    }
    spent_.emplace_back(call.ran, now_ns());
    if (!call.traits.leave_out.is_none()) {
      if (call.traits.is_uninitialised && results.size() == 1 && results[0].isTensor()) {
        memory_.note(results[0].toTensor(), true);  // nothing is there yet
      }
    } else if (call.is_usual) {
      checked_ += call.made.size();
      for (const at::Tensor* tensor : call.made) {
        memory_.note(*tensor, is_all_finite(call, *tensor));
      }
    } else {
      const PythonCall python(call.op.schema(), call.arguments);
      const py::object out = returned(results);
      look_at_(call.function, python.args, python.kwargs, out, call.was_finite);
    }
  }

  // (checked tensors, {why left out: count}, start and end in ns of each span spent with it, as bytes)
  py::tuple counts() const {
    py::dict left_out;
    for (const auto& [reason, count] : left_out_) {
      left_out[py::handle(reason)] = count;
    }
    return py::make_tuple(checked_, left_out, as_bytes(spent_));
  }

 private:
  bool ask(const CheckedCall& call) {
    bool was_finite = true;
    for (const at::Tensor* tensor : call.written) {
      if (!is_readable(*tensor)) {
        continue;
      }
      std::optional<bool> known = memory_.was_finite(*tensor);
      if (!known.has_value()) {
        const int64_t start = now_ns();
        const Values values = has_plain_memory(*tensor) ? values_of(*tensor) : Values::unknown;
        spent_.emplace_back(start, now_ns());
        if (values != Values::plain && values != Values::tiny) {
          const PythonCall python(call.op.schema(), call.arguments);
          return ask_about_(call.function, python.args, python.kwargs).cast<bool>();
        }
        memory_.note(*tensor, true);
      }
      was_finite &= known.value_or(true);
    }
    return was_finite;
  }

  static void look(CheckedCall& call, const at::Tensor& tensor) {
    const Values values = has_plain_memory(tensor) ? values_of(tensor) : Values::unknown;
    if (values == Values::absent) {
      return;
    }
    call.made.push_back(&tensor);
    // Zeros are what they should be in memory that is written to, by chance, or where no numbers went in.
    call.is_usual &= values == Values::plain || (values == Values::tiny && (!call.written.empty() || call.traits.is_random ||
                                                                            !has_numbers(call.arguments)));
  }

  static bool has_numbers(const CheckedCall::Arguments& arguments) {
    bool found = false;
    for (const c10::IValue& argument : arguments) {
      each_tensor(argument, [&](const at::Tensor& tensor) { found |= is_readable(tensor); });
    }
    return found;
  }

  static bool is_narrow(const at::Tensor& tensor) {
    const at::ScalarType type = tensor.scalar_type();
    return type == at::kByte || type == at::kChar || type == at::kShort;
  }

  // Whether all of the storage is: what was written to a part of it is finite.
  bool is_all_finite(const CheckedCall& call, const at::Tensor& tensor) const {
    return call.written.empty() || tensor.nbytes() == tensor.storage().nbytes() || memory_.was_finite(tensor) != false;
  }

  Memory memory_;
  py::object describe_, ask_about_, look_at_;
  size_t checked_ = 0;
  std::unordered_map<PyObject*, size_t> left_out_;
  std::vector<Span> spent_;
};

}  // namespace nbkit
