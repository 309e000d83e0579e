// A call of an op as Python sees it in __torch_dispatch__: its arguments without trailing defaults, its results.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/tensor_memoryformats.h>

namespace nbkit {

namespace py = pybind11;

template <typename Value>
py::bytes as_bytes(const std::vector<Value>& values) {
  return py::bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value));
}

// dtypes, layouts and memory formats are integers on torch's stack.
inline py::object argument_object(const c10::Argument& argument, const c10::IValue& value) {
  if (value.isNone()) {
    return py::none();
  }
  c10::TypePtr type = argument.real_type();
  if (auto optional = type->cast<c10::OptionalType>()) {
    type = optional->getElementType();
  }
  switch (type->kind()) {
    case c10::TypeKind::ScalarTypeType:
      return py::reinterpret_borrow<py::object>(
          reinterpret_cast<PyObject*>(torch::getTHPDtype(static_cast<c10::ScalarType>(value.toInt()))));
    case c10::TypeKind::LayoutType:
      return py::reinterpret_borrow<py::object>(
          reinterpret_cast<PyObject*>(torch::getTHPLayout(static_cast<c10::Layout>(value.toInt()))));
    case c10::TypeKind::MemoryFormatType:
      return py::reinterpret_borrow<py::object>(
          torch::utils::getTHPMemoryFormat(static_cast<c10::MemoryFormat>(value.toInt())));
    default:
      return torch::jit::toPyObject(value);
  }
}

inline bool is_default(const c10::Argument& argument, const c10::IValue& value) {
  return argument.default_value().has_value() && *argument.default_value() == value;
}

struct PythonCall {
  py::tuple args;
  py::dict kwargs;

  PythonCall(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> values) : args(0) {
    size_t positional = 0;
    while (positional < values.size() && !schema.arguments()[positional].kwarg_only()) {
      ++positional;
    }
    size_t given = positional;
    while (given > 0 && is_default(schema.arguments()[given - 1], values[given - 1])) {
      --given;
    }
    args = py::tuple(given);
    for (size_t index = 0; index < values.size(); ++index) {
      const c10::Argument& argument = schema.arguments()[index];
      if (index < given) {
        args[index] = argument_object(argument, values[index]);
      } else if (index >= positional && !is_default(argument, values[index])) {
        kwargs[argument.name().c_str()] = argument_object(argument, values[index]);
      }
    }
  }
};

// What a call returned: a tuple of several results, None without any.
inline py::object returned(c10::ArrayRef<c10::IValue> results) {
  if (results.empty()) {
    return py::none();
  }
  if (results.size() == 1) {
    return torch::jit::toPyObject(results[0]);
  }
  py::tuple objects(results.size());
  for (size_t index = 0; index < results.size(); ++index) {
    objects[index] = torch::jit::toPyObject(results[index]);
  }
  return objects;
}

}  // namespace nbkit
