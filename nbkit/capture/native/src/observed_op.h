// An op as torch's observer reports it: whether a call of it comes to a kernel of its own.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/flat_hash_map.h>

#include "arguments.h"
#include "op_traits.h"

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
  DescribedArguments& arguments;
  bool is_composite, is_detach, is_autograds;
  ska::flat_hash_map<uint64_t, bool> passes;  // by the keys of a call

  explicit ObservedOp(const c10::OperatorHandle& op)
      : op(op),
        traits(traits_of(op)),
        arguments(described_arguments(traits)),
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

}  // namespace nbkit
