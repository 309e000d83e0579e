// What is the same at every call of an op, or of an autograd node of one kind, and what Python lends to find it out.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/PyInterpreter.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/utils/pybind.h>

#include <typeinfo>
#include <unordered_map>
#include <vector>

namespace nbkit {

// What Python lends us once per process. This and the other statics are never destroyed: Python would be gone by then.
struct Python {
  py::object is_hidden;     // of an op: whether it is a query of torch's own, no work of the step
  py::object is_reshaping;  // of an op: whether it changes a tensor's metadata in place
  py::object code_kind;     // of a code object: whose it is
  py::object node_location;  // of a frame: the line that led to an op which an autograd node runs
  py::object current_node;
  py::object function_base;  // what the nodes of custom Functions derive from
  py::object describe;       // of an op and its arguments: what is written of those that are no tensors
  py::object is_dtensor;     // of a tensor: whether its values lie in several processes
  py::object engine_code;    // of the frame in which the main thread waits for a backward pass
};
inline Python* python = nullptr;

inline py::object attribute(const py::object& object, PyObject* name) {
  PyObject* value = PyObject_GetAttr(object.ptr(), name);
  if (value == nullptr) {
    throw py::error_already_set();
  }
  return py::reinterpret_steal<py::object>(value);
}

// What is the same at every call of an op.
struct OpTraits {
  py::object function;
  bool is_hidden, is_reshaping;
  size_t returns;
  std::vector<bool> is_input;   // of each argument: not an out= tensor
  std::vector<bool> is_result;  // of each argument of an op that returns nothing: written to
};

inline const OpTraits& traits_of(const c10::OperatorHandle& op) {
  static auto& known = *new std::unordered_map<PyObject*, OpTraits>();
  py::handle function = torch::detail::getTorchApiFunction(op);
  auto found = known.find(function.ptr());
  if (found == known.end()) {
    const c10::FunctionSchema& schema = op.schema();
    OpTraits traits{py::reinterpret_borrow<py::object>(function),
                    python->is_hidden(function).cast<bool>(),
                    python->is_reshaping(function).cast<bool>(),
                    schema.returns().size(),
                    {},
                    {}};
    for (const c10::Argument& argument : schema.arguments()) {
      const bool is_written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
      traits.is_input.push_back(!argument.is_out());
      traits.is_result.push_back(traits.returns == 0 && is_written && !argument.kwarg_only());
    }
    found = known.emplace(function.ptr(), std::move(traits)).first;
  }
  return found->second;
}

// How an autograd node stands in a row: by its class in Python.
struct NodeKind {
  py::object type;
  bool accumulates;
};

inline NodeKind kind_of(const torch::autograd::Node& node) {
  static auto& kinds = *new std::unordered_map<const std::type_info*, NodeKind>();
  auto found = kinds.find(&typeid(node));
  if (found != kinds.end()) {
    return found->second;
  }
  py::object type = py::type::of(python->current_node());
  NodeKind kind{type, dynamic_cast<const torch::autograd::AccumulateGrad*>(&node) != nullptr};
  // All custom Functions are of one class in C++, each has its own in Python.
  if (PyObject_IsSubclass(type.ptr(), python->function_base.ptr()) == 0) {
    kinds.emplace(&typeid(node), kind);
  }
  return kind;
}

}  // namespace nbkit
