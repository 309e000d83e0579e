// What a recording writes down: records of objects, then integers, read as columns. It has the methods of FlatList in
// nbkit/capture/raw/flat_list.py.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nbkit {

namespace py = pybind11;

// In blocks: what is written stays where it is. Needs the GIL where it holds objects.
template <size_t objects_each, size_t integers_each>
class Log {
 public:
  struct Record {
    std::array<py::object, objects_each> objects;  // those that are not set are None
    std::array<int64_t, integers_each> integers{};
  };
  using Names = std::vector<std::string>;

  Log(Names objects, Names integers) : objects_(std::move(objects)), integers_(std::move(integers)) {
    if (objects_.size() != objects_each || integers_.size() != integers_each) {
      throw py::value_error("the library has other fields than nbkit/capture/raw");
    }
  }

  size_t count() const { return count_; }

  size_t reserve() {
    if (count_ == blocks_.size() * block_size) {
      blocks_.push_back(std::make_unique<std::array<Record, block_size>>());
    }
    return count_++;
  }

  Record& at(size_t row) { return (*blocks_[row / block_size])[row % block_size]; }

  size_t add(Record record) {
    const size_t row = reserve();
    at(row) = std::move(record);
    return row;
  }

  // The same of what Python holds as one sequence.
  size_t add_sequence(const py::sequence& values) { return add(record_of(values)); }
  void put_sequence(size_t row, const py::sequence& values) { checked(row) = record_of(values); }
  void clear_row(size_t row) { checked(row) = Record(); }

  py::object value(size_t row, const std::string& field) {
    const Record& record = checked(row);
    const size_t object = find(objects_, field);
    return object < objects_each ? or_none(record, object) : py::int_(record.integers.at(find(integers_, field)));
  }

  py::array_t<int64_t> integers(const std::string& field) {
    const size_t place = find(integers_, field);
    py::array_t<int64_t> column(static_cast<py::ssize_t>(count_));
    int64_t* to = column.mutable_data();
    for (size_t row = 0; row < count_; ++row) {
      to[row] = at(row).integers.at(place);
    }
    return column;
  }

  // Numbers of the objects, dense from 0 in order of appearance, and the objects, told apart by identity.
  py::tuple objects(const std::string& field) {
    const size_t place = find(objects_, field);
    py::array_t<int64_t> column(static_cast<py::ssize_t>(count_));
    int64_t* to = column.mutable_data();
    std::unordered_map<PyObject*, int64_t> numbers;
    py::list distinct;
    PyObject* last = nullptr;  // most stand in a row
    for (size_t row = 0; row < count_; ++row) {
      const py::object object = or_none(at(row), place);
      if (object.ptr() == last) {
        to[row] = to[row - 1];
        continue;
      }
      const auto [found, is_new] = numbers.try_emplace(object.ptr(), static_cast<int64_t>(numbers.size()));
      if (is_new) {
        distinct.append(object);
      }
      to[row] = found->second;
      last = object.ptr();
    }
    return py::make_tuple(column, distinct);
  }

 private:
  static constexpr size_t block_size = 512;

  static size_t find(const Names& names, const std::string& field) {
    return std::find(names.begin(), names.end(), field) - names.begin();
  }

  static py::object or_none(const Record& record, size_t object) {
    const py::object& held = record.objects.at(object);
    return held ? held : py::none();
  }

  Record& checked(size_t row) {
    if (row >= count_) {
      throw py::index_error("no such row");
    }
    return at(row);
  }

  static Record record_of(const py::sequence& values) {
    if (values.size() != objects_each + integers_each) {
      throw py::value_error("a record of the library has other fields");
    }
    Record record;
    for (size_t index = 0; index < objects_each; ++index) {
      record.objects.at(index) = values[index];
    }
    for (size_t index = 0; index < integers_each; ++index) {
      record.integers.at(index) = py::cast<int64_t>(values[objects_each + index]);
    }
    return record;
  }

  Names objects_, integers_;
  std::vector<std::unique_ptr<std::array<Record, block_size>>> blocks_;
  size_t count_ = 0;
};

// OpRecord in nbkit/capture/raw/recording.py.
enum OpObject : size_t { op_name, op_context, op_node_type, op_location, op_arguments, op_objects };
enum OpInteger : size_t {
  op_parent, op_sequence, op_node, op_start, op_end, op_first_tensor, op_inputs, op_outputs, op_integers
};
using OpLog = Log<op_objects, op_integers>;
// FIELDS in nbkit/capture/raw/tensor_registry.py: fresh, storage, geometry, requires_grad.
using TensorLog = Log<0, 4>;
// Numbers of the tensors that a thread met.
using NumberLog = Log<0, 1>;

template <typename Kind>
void bind_log(py::module_& module, const char* name) {
  py::class_<Kind, std::shared_ptr<Kind>>(module, name)
      .def(py::init<typename Kind::Names, typename Kind::Names>())
      .def_property_readonly("row_count", &Kind::count)
      .def("reserve", &Kind::reserve)
      .def("add", &Kind::add_sequence)
      .def("put", &Kind::put_sequence)
      .def("clear_row", &Kind::clear_row)
      .def("value", &Kind::value)
      .def("integers", &Kind::integers)
      .def("objects", &Kind::objects);
}

}  // namespace nbkit
