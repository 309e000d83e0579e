// Columns of a flat list, which holds the fields of one record after the other: nbkit/capture/frames/flat_list.py.
#pragma once

#include <pybind11/numpy.h>
#include <torch/csrc/utils/pybind.h>

#include <unordered_map>

namespace nbkit {

namespace py = pybind11;

inline py::ssize_t records_of(const py::list& values, py::ssize_t first, py::ssize_t step) {
  const auto size = static_cast<py::ssize_t>(values.size());
  return first < size ? (size - first + step - 1) / step : 0;
}

inline py::array_t<int64_t> integers(const py::list& values, py::ssize_t first, py::ssize_t step) {
  py::array_t<int64_t> column(records_of(values, first, step));
  int64_t* to = column.mutable_data();
  for (py::ssize_t row = 0; row < column.size(); ++row) {
    to[row] = PyLong_AsLongLong(PyList_GET_ITEM(values.ptr(), first + row * step));
    if (to[row] == -1 && PyErr_Occurred() != nullptr) {
      throw py::error_already_set();
    }
  }
  return column;
}

// Numbers of the objects, dense from 0 in order of appearance, and the objects, told apart by identity.
inline py::tuple objects(const py::list& values, py::ssize_t first, py::ssize_t step) {
  py::array_t<int64_t> column(records_of(values, first, step));
  int64_t* to = column.mutable_data();
  std::unordered_map<PyObject*, int64_t> numbers;
  py::list distinct;
  PyObject* last = nullptr;  // most stand in a row
  for (py::ssize_t row = 0; row < column.size(); ++row) {
    PyObject* object = PyList_GET_ITEM(values.ptr(), first + row * step);
    if (object == last) {
      to[row] = to[row - 1];
      continue;
    }
    const auto [found, is_new] = numbers.try_emplace(object, static_cast<int64_t>(numbers.size()));
    if (is_new) {
      distinct.append(py::handle(object));
    }
    to[row] = found->second;
    last = object;
  }
  return py::make_tuple(column, distinct);
}

}  // namespace nbkit
