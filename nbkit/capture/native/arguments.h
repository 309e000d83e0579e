// The tensors among the arguments of a call: visited, and changed for its reference.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

namespace nbkit {

inline bool is_of(const c10::Argument& argument, c10::TypeKind kind) {
  const c10::TypePtr& type = argument.real_type();
  if (type->kind() == kind) {
    return true;
  }
  const auto optional = type->cast<c10::OptionalType>();
  return optional != nullptr && optional->getElementType()->kind() == kind;
}

// The tensor of a value; null where there is none, and for a number that torch has wrapped for its own use.
inline const at::Tensor* tensor_of(const c10::IValue& value) {
  if (!value.isTensor() || !value.toTensor().defined()) {
    return nullptr;
  }
  return value.toTensor().unsafeGetTensorImpl()->is_wrapped_number() ? nullptr : &value.toTensor();
}

// Every tensor of a value as Python sees them: lists flattened, without numbers that torch has wrapped.
template <typename Work>
void each_operand(const c10::IValue& value, const Work& work) {
  if (const at::Tensor* tensor = tensor_of(value)) {
    work(*tensor);
  } else if (value.isTensorList() || value.isList()) {
    for (const c10::IValue& item : value.toListRef()) {
      if (item.isInt() || item.isDouble()) {
        return;  // sizes and scales
      }
      each_operand(item, work);
    }
  }
}

// The value with every tensor changed.
template <typename Change>
c10::IValue mapped(const c10::IValue& value, const Change& change) {
  if (const at::Tensor* tensor = tensor_of(value)) {
    return change(*tensor);
  }
  if (!value.isTensorList() && !value.isList()) {
    return value;
  }
  const auto items = value.toListRef();
  if (items.empty() || items[0].isInt() || items[0].isDouble() || items[0].isBool()) {
    return value;
  }
  const bool is_of_tensors = value.isTensorList();
  c10::impl::GenericList list(is_of_tensors ? c10::TypePtr(c10::TensorType::get()) : value.toList().elementType());
  list.reserve(items.size());
  for (const c10::IValue& item : items) {
    list.push_back(mapped(item, change));
  }
  return list;
}

}  // namespace nbkit
