// What a call has been given and has returned, as Python sees it: other tensors with the same memory.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <vector>

#include "../python_call.h"
#include "../tensors.h"

namespace nbkit {

// Another tensor with the same memory; itself where Python knows it, or has to.
inline at::Tensor alias_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !has_plain_memory(tensor) || object_of(tensor) != nullptr) {
    return tensor;
  }
  const c10::impl::ExcludeDispatchKeyGuard in_no_mode(c10::DispatchKey::Python);
  return at::Tensor(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(0), false));
}

// A value as Python sees it. With objects of their own for its tensors autograd would no longer add gradients in place,
// and nn.Parameter() would refuse what detach() returned.
inline c10::IValue shown(const c10::IValue& value) {
  if (value.isTensor()) {
    return alias_of(value.toTensor());
  }
  if (!value.isTensorList()) {
    return value;
  }
  c10::List<at::Tensor> tensors;
  for (const at::Tensor& tensor : value.toTensorVector()) {
    tensors.push_back(alias_of(tensor));
  }
  return tensors;
}

inline py::object shown(c10::ArrayRef<c10::IValue> results) {
  std::vector<c10::IValue> seen;
  for (const c10::IValue& result : results) {
    seen.push_back(shown(result));
  }
  return returned(seen);
}

}  // namespace nbkit
