// The arguments of a call that are no tensors, and where its tensors lie among them: nbkit/capture/raw/arguments.py
// describes them, once for all calls of an op that have the same.
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "op_traits.h"
#include "python_call.h"
#include "tensors.h"

namespace nbkit {

// A number that torch has wrapped for its own use reaches Python as a number.
inline bool is_number(const at::Tensor& tensor) { return tensor.unsafeGetTensorImpl()->is_wrapped_number(); }

// The number in a wrapped one; none of what is no wrapped number, or holds it elsewhere.
inline std::optional<c10::IValue> scalar_of(const at::Tensor& tensor) {
  if (!is_number(tensor) || !has_plain_memory(tensor) || !tensor.device().is_cpu() || tensor.numel() != 1) {
    return std::nullopt;
  }
  switch (tensor.scalar_type()) {
    case c10::ScalarType::Double:
      return c10::IValue(*tensor.const_data_ptr<double>());
    case c10::ScalarType::Long:
      return c10::IValue(*tensor.const_data_ptr<int64_t>());
    case c10::ScalarType::Bool:
      return c10::IValue(*tensor.const_data_ptr<bool>());
    case c10::ScalarType::ComplexDouble:
      return c10::IValue(*tensor.const_data_ptr<c10::complex<double>>());
    default:
      return std::nullopt;
  }
}

// Calls `visit` with each tensor of a value.
template <typename Visit>
void each_tensor(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) {
      visit(value.toTensor());
    }
  } else if (value.isTensorList() || value.isList()) {
    for (const c10::IValue& item : value.toListRef()) {
      if (item.isInt() || item.isDouble()) {
        break;
      }
      each_tensor(item, visit);
    }
  }
}

enum ArgumentTag : int64_t { none, tensor, number, list, integer, real, truth, text, device, complex, generator, other };

inline int64_t bits(double value) {
  int64_t result;
  std::memcpy(&result, &value, sizeof(result));
  return result;
}

// Adds what an argument is to a key; `on_tensor` that of a tensor which is there and holds no wrapped number, and `on_other`
// that of what has no form here: a symbolic size, a generator, a wrapped number of an unusual dtype.
template <typename OnTensor, typename OnOther>
void append_argument(Key& key, const c10::IValue& value, const OnTensor& on_tensor, const OnOther& on_other) {
  const auto push = [&](ArgumentTag tag, int64_t what) {
    key.push_back(tag);
    key.push_back(what);
  };
  if (value.isTensor()) {
    const at::Tensor& given = value.toTensor();
    if (!given.defined()) {
      key.push_back(none);
    } else if (const auto scalar = scalar_of(given)) {
      key.push_back(number);
      append_argument(key, *scalar, on_tensor, on_other);
    } else if (is_number(given)) {
      on_other();
    } else {
      on_tensor(given);
    }
  } else if (value.isInt()) {
    push(integer, value.toInt());
  } else if (value.isBool()) {
    push(truth, value.toBool());
  } else if (value.isDouble()) {
    push(real, bits(value.toDouble()));
  } else if (value.isNone()) {
    key.push_back(none);
  } else if (value.isList()) {
    const auto items = value.toListRef();
    push(list, static_cast<int64_t>(items.size()));
    for (const c10::IValue& item : items) {
      append_argument(key, item, on_tensor, on_other);
    }
  } else if (value.isDevice()) {
    const c10::Device given = value.toDevice();
    push(device, (static_cast<int64_t>(given.type()) << 8) | static_cast<uint8_t>(given.index()));
  } else if (value.isString()) {
    const std::string& given = value.toStringRef();
    push(text, static_cast<int64_t>(given.size()));
    key.insert(key.end(), given.begin(), given.end());
  } else if (value.isComplexDouble()) {
    push(complex, bits(value.toComplexDouble().real()));
    key.push_back(bits(value.toComplexDouble().imag()));
  } else {
    on_other();
  }
}

class DescribedArguments {
 public:
  // What Python describes of a call with these values, one for each argument of the op's schema.
  py::object of(const c10::FunctionSchema& schema, const OpTraits& traits, c10::ArrayRef<c10::IValue> values) {
    key_.clear();
    for (size_t index = 0; index < values.size(); ++index) {
      if (traits.is_input[index]) {
        append_argument(
            key_, values[index], [&](const at::Tensor&) { key_.push_back(tensor); }, [&] { key_.push_back(other); });
      }
    }
    if (last_ && key_ == last_key_) {  // most calls in a row, as an optimizer's for each parameter
      return last_;
    }
    auto found = known_.find(key_);
    if (found == known_.end()) {
      if (known_.size() >= most_known) {  // numbers that differ from call to call
        known_.clear();
      }
      py::list arguments;
      for (size_t index = 0; index < values.size(); ++index) {
        if (traits.is_input[index]) {
          arguments.append(marked(schema.arguments()[index], values[index]));
        }
      }
      found = known_.emplace(key_, python->describe(traits.function, arguments)).first;
    }
    last_ = found->second;
    last_key_.swap(key_);
    return last_;
  }

 private:
  static constexpr size_t most_known = 10'000;

  static py::object marked(const c10::Argument& argument, const c10::IValue& value) {
    if (value.isTensor()) {
      const at::Tensor& given = value.toTensor();
      if (!given.defined()) {
        return py::none();
      }
      if (const auto scalar = scalar_of(given)) {
        return torch::jit::toPyObject(*scalar);
      }
      return is_number(given) ? py::none() : py::object(py::ellipsis());
    }
    if (value.isList()) {
      py::list items;
      for (const c10::IValue& item : value.toListRef()) {
        items.append(marked(argument, item));
      }
      return py::tuple(items);
    }
    const bool is_known = value.isInt() || value.isBool() || value.isDouble() || value.isDevice() || value.isString() ||
                          value.isComplexDouble();
    return is_known ? argument_object(argument, value) : py::none();
  }

  std::unordered_map<Key, py::object, KeyHash> known_;
  Key key_, last_key_;
  py::object last_;
};

// Those of an op, of all recordings: to describe one anew takes as long as a hundred that are known.
inline DescribedArguments& described_arguments(const OpTraits& traits) {
  static auto& all = *new std::unordered_map<const OpTraits*, DescribedArguments>();
  return all[&traits];
}

}  // namespace nbkit
