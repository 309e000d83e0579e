// What a ThreadState of a Recording (nbkit/capture/raw/recording.py) holds in its slots: each op asks, and to read them in
// place costs less than to look them up.
#pragma once

#include <pybind11/pybind11.h>
#include <structmember.h>

#include <cstdint>

namespace nbkit {

namespace py = pybind11;

class ObjectSlot {
 public:
  ObjectSlot(py::handle type, const char* name) {
    const py::object descriptor = type.attr(name);
    if (!Py_IS_TYPE(descriptor.ptr(), &PyMemberDescr_Type)) {
      throw py::type_error("no slot of a ThreadState");
    }
    offset_ = reinterpret_cast<PyMemberDescrObject*>(descriptor.ptr())->d_member->offset;
  }

  py::handle borrowed(py::handle object) const { return *place(object); }
  py::object of(py::handle object) const { return py::reinterpret_borrow<py::object>(borrowed(object)); }

  void set(py::handle object, const py::object& value) const {
    PyObject* before = *place(object);
    *place(object) = value.inc_ref().ptr();
    Py_XDECREF(before);
  }

 private:
  PyObject** place(py::handle object) const {
    return reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object.ptr()) + offset_);
  }

  Py_ssize_t offset_;
};

struct ThreadSlots {
  ObjectSlot context, parent, in_closure;

  explicit ThreadSlots(const py::object& thread)
      : context(py::type::of(thread), "context"),
        parent(py::type::of(thread), "parent"),
        in_closure(py::type::of(thread), "in_closure") {}

  int64_t parent_of(const py::object& thread) const { return PyLong_AsLongLong(parent.borrowed(thread).ptr()); }
};

}  // namespace nbkit
