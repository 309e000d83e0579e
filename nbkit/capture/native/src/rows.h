// Rows of ops on the Python lists of a Recording (nbkit/capture/raw/recording.py), as the Python recorder writes them.
#pragma once

#include <ATen/SequenceNumber.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <array>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "host.h"
#include "op_traits.h"
#include "tensors.h"

namespace nbkit {

struct Input {
  const at::Tensor* tensor;
  bool is_result;
};
using Inputs = c10::SmallVector<Input, 16>;

// One call: what is known of it before it runs. Fields as in OpRecord, nbkit/capture/raw/recording.py.
struct Call {
  py::object context, tensors, node = py::int_(-1), node_type = py::none(), location = py::none(),
             arguments = py::none();
  c10::SmallVector<py::object, 4> inputs;
  uint64_t sequence = 0;
  int64_t start = 0, end = 0;
  Py_ssize_t slot = -1;  // its place in the list, where it took one when it began; else its row is appended
  bool makes_parameters = false;  // nn.Parameter() takes the result of a detach() as it is
  std::vector<py::object> results;
};

// Of a ThreadState, which each op asks.
inline PyObject* const context_name = PyUnicode_InternFromString("context");
inline PyObject* const parent_name = PyUnicode_InternFromString("parent");

constexpr size_t row_fields = 12;  // of OpRecord
using Row = std::array<py::object, row_fields>;

// Takes the place of a row at the end of the list; nothing can come between, as in Python it could.
inline Py_ssize_t reserve(const py::object& ops) {
  const Py_ssize_t slot = PyList_GET_SIZE(ops.ptr());
  for (size_t field = 0; field < row_fields; ++field) {
    append(ops, py::none());
  }
  return slot;
}

// A context with another parent.
inline py::object with_parent(const py::object& context, const py::object& parent) {
  const Py_ssize_t size = PyTuple_GET_SIZE(context.ptr());
  py::tuple fields(size);
  fields[0] = parent;
  for (Py_ssize_t index = 1; index < size; ++index) {
    fields[index] = py::handle(PyTuple_GET_ITEM(context.ptr(), index));
  }
  return std::move(fields);
}

class Rows {
 public:
  explicit Rows(py::object recording)
      : recording_(std::move(recording)),
        main_(recording_.attr("main")),
        main_tensors_(main_.attr("tensors")),
        ops_(recording_.attr("ops")),
        number_in_python_(recording_.attr("registry").attr("number")),
        tensors_(recording_.attr("registry").attr("tensors").cast<std::shared_ptr<Tensors>>()) {}

 protected:
  Call begin(const Inputs& inputs) {
    Call call;
    call.context = attribute(main_, context_name);
    call.tensors = main_tensors_;
    guarded("place not described", [&] { is_main_thread() ? stand(call, main_, main_function_thread_) : stand_elsewhere(call); });
    const bool is_known = guarded("inputs not described", [&] {
      for (const Input& input : inputs) {
        call.inputs.push_back(number(*input.tensor, false));
        if (input.is_result) {
          call.results.push_back(call.inputs.back());
        }
      }
    });
    if (!is_known) {
      call.inputs.clear();
      call.results.clear();
    }
    call.sequence = at::sequence_number::peek();
    return call;
  }

  bool is_main_thread() const { return std::this_thread::get_id() == main_thread_; }

  // In another thread: one of autograd's for a device, which runs nodes of the main thread, or of the step's where all
  // threads are recorded.
  void stand_elsewhere(Call& call) {
    const py::object thread = recording_.attr("thread")();
    call.context = attribute(thread, context_name);
    call.tensors = thread.attr("tensors");
    const bool is_of_user = thread.attr("is_of_user").cast<bool>();
    stand(call, thread, is_of_user ? at::RecordFunction::currentThreadId() : main_function_thread_);
  }

  // Where the call stands: its autograd node and source line, as the Python recorder finds them. Each thread numbers its
  // nodes anew: the number of one that another thread than `maker` has made says nothing.
  void stand(Call& call, const py::object& thread, uint64_t maker) {
    const auto node = torch::autograd::get_current_node();
    if (node) {
      const NodeKind kind = kind_of(*node);
      call.node_type = kind.type;
      if (kind.accumulates) {
        call.node = number(static_cast<const torch::autograd::AccumulateGrad&>(*node).variable, false);
      } else if (node->thread_id() == maker) {
        call.node = py::int_(node->sequence_nr());
      }
      call.location = node_location();
    } else if (PyLong_AsLong(attribute(thread, parent_name).ptr()) < 0) {
      call.location = user_location();
    }
  }

  py::object number(const at::Tensor& tensor, bool fresh, bool by_storage = false) {
    return is_plain(tensor) ? tensors_->number(tensor, fresh, by_storage) : number_in_python_(tensor, fresh);
  }

  void finish(const OpTraits& traits, Call& call, c10::ArrayRef<c10::IValue> stack) {
    const Py_ssize_t first = append_inputs(call), middle = PyList_GET_SIZE(call.tensors.ptr());
    append_all(call.tensors, "outputs not described", [&] {
      for (const py::object& result : call.results) {
        append(call.tensors, result);
      }
      for (size_t index = stack.size() - traits.returns; index < stack.size(); ++index) {
        note(call, stack[index]);
      }
    });
    write(traits, call, first, PyList_GET_SIZE(call.tensors.ptr()) - middle);
  }

  void note(Call& call, const c10::IValue& value) {
    if (value.isTensor()) {
      if (value.toTensor().defined()) {
        append(call.tensors, number(value.toTensor(), true, call.makes_parameters));
      }
    } else if (value.isList()) {
      for (const c10::IValue& item : value.toListRef()) {
        note(call, item);
      }
    }
  }

  void fail(const OpTraits& traits, Call& call) {
    py::error_scope raised;  // an error of Python's may be on its way
    call.end = now_ns();
    guarded("error not described", [&] {
      // Of calls inside each other the innermost, which ends first; it stands last.
      const py::object before = recording_.attr("failed_slot");
      if (call.slot < 0 || before.is_none() || before.cast<Py_ssize_t>() < call.slot) {
        recording_.attr("failed_slot") = call.slot < 0 ? PyList_GET_SIZE(ops_.ptr()) : call.slot;
      }
    });
    write(traits, call, append_inputs(call), 0);
  }

  // All tensors of a row stand together, though others may have been recorded since it began. Returns their place.
  Py_ssize_t append_inputs(const Call& call) {
    const Py_ssize_t first = PyList_GET_SIZE(call.tensors.ptr());
    append_all(call.tensors, "inputs not described", [&] {
      for (const py::object& input : call.inputs) {
        append(call.tensors, input);
      }
    });
    return first;
  }

  // Gives the call its place in the list, so that calls inside of it stand after it, and the call around it as parent
  // where that began after the API call that is.
  void take_slot(Call& call, Py_ssize_t around) {
    guarded("place not taken", [&] {
      if (PyLong_AsSsize_t(PyTuple_GET_ITEM(call.context.ptr(), 0)) < around) {
        call.context = with_parent(call.context, py::int_(around));
      }
      append_all(ops_, "row not written", [&] { call.slot = reserve(ops_); });
    });
  }

  void write(const OpTraits& traits, const Call& call, Py_ssize_t first, Py_ssize_t outputs) {
    append_all(ops_, "row not written", [&] {
      Row row{
          traits.function,       call.context,  py::int_(call.sequence), call.node,
          call.node_type,        py::int_(call.start), py::int_(call.end),      call.location,
          py::int_(first), py::int_(call.inputs.size()), py::int_(outputs), call.arguments};
      if (call.slot >= 0) {
        put(call.slot, std::move(row));
        return;
      }
      for (const py::object& field : row) {
        append(ops_, field);
      }
    });
  }

  // Writes a row into the place that it took.
  void put(Py_ssize_t slot, Row row) {
    for (py::object& field : row) {
      PyList_SetItem(ops_.ptr(), slot++, field.release().ptr());
    }
  }

  // Work that appends to a list; on trouble nothing of it stays.
  template <typename Work>
  void append_all(const py::object& list, const char* what, const Work& work) {
    const Py_ssize_t before = PyList_GET_SIZE(list.ptr());
    if (!guarded(what, work)) {
      PyList_SetSlice(list.ptr(), before, PyList_GET_SIZE(list.ptr()), nullptr);
    }
  }

  // The recorder's own trouble must never become the step's.
  template <typename Work>
  bool guarded(const char* what, const Work& work) {
    try {
      work();
      return true;
    } catch (const std::exception& error) {
      const auto* in_python = dynamic_cast<const py::error_already_set*>(&error);
      if (in_python != nullptr && in_python->matches(PyExc_KeyboardInterrupt)) {
        PyErr_SetInterrupt();  // it is for the step
      }
      PyErr_Clear();
      try {
        recording_.attr("skip")(what);
      } catch (const std::exception&) {
        PyErr_Clear();
      }
      return false;
    }
  }

  py::object recording_, main_, main_tensors_, ops_;
  const std::thread::id main_thread_ = std::this_thread::get_id();
  const uint64_t main_function_thread_ = at::RecordFunction::currentThreadId();
  py::object number_in_python_;
  std::shared_ptr<Tensors> tensors_;
};

}  // namespace nbkit
