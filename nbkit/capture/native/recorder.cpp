// The hot path of OpMode (nbkit/capture/recorder/dispatch_mode.py) in C++: it records ops of the plain, common kind into the same
// Python lists, and leaves every other op to the Python recorder, which is the reference for what a row holds.

#include <ATen/SequenceNumber.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/PyInterpreter.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/utils/torch_dispatch_mode.h>

#include <memory>
#include <typeinfo>

#include "checker.h"
#include "clock.h"
#include "columns.h"
#include "comparable.h"
#include "forwarding.h"
#include "lazy_bits.h"
#include "tensors.h"

namespace nbkit {

using torch::jit::Stack;

// What Python lends us once per process. This and the other statics are never destroyed: Python would be gone by then.
struct Python {
  PyTypeObject* mode_type;  // OpMode
  py::object is_special;    // of an op: whether the Python recorder does more for it than to write a row
  py::object user_place;
  py::object place_at_node;  // the same of an op that an autograd node runs
  py::object current_node;
  py::object function_base;  // what the nodes of custom Functions derive from
  py::object engine_code;    // of the frame in which the main thread waits for a backward pass
};
Python* python = nullptr;

py::object attribute(const py::object& object, PyObject* name) {
  PyObject* value = PyObject_GetAttr(object.ptr(), name);
  if (value == nullptr) {
    throw py::error_already_set();
  }
  return py::reinterpret_steal<py::object>(value);
}

// What is the same at every call of an op.
struct OpPlan {
  py::object function;
  bool is_ours;
  size_t returns;
  std::vector<bool> is_input;   // of each argument: not an out= tensor
  std::vector<bool> is_result;  // of each argument of an op that returns nothing: written to
};

const OpPlan& plan_of(const c10::OperatorHandle& op) {
  static auto& plans = *new std::unordered_map<PyObject*, OpPlan>();
  py::handle function = torch::detail::getTorchApiFunction(op);
  auto found = plans.find(function.ptr());
  if (found == plans.end()) {
    const c10::FunctionSchema& schema = op.schema();
    OpPlan plan{py::reinterpret_borrow<py::object>(function), !python->is_special(function).cast<bool>(),
                schema.returns().size(), {}, {}};
    for (const c10::Argument& argument : schema.arguments()) {
      const bool is_written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
      plan.is_input.push_back(!argument.is_out());
      plan.is_result.push_back(plan.returns == 0 && is_written && !argument.kwarg_only());
    }
    found = plans.emplace(function.ptr(), std::move(plan)).first;
  }
  return found->second;
}

// How an autograd node stands in a row: by its class in Python.
struct NodeKind {
  py::object type;
  bool accumulates;
};

NodeKind kind_of(const torch::autograd::Node& node) {
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

struct Input {
  const at::Tensor* tensor;
  bool is_result;
};
using Inputs = c10::SmallVector<Input, 16>;

// One call: what is known of it before it runs. Fields as in OpRecord, nbkit/capture/recorder/recording.py.
struct Call {
  py::object context, tensors, node = py::int_(-1), node_type = py::none(), place = py::none();
  size_t first = 0, inputs = 0;
  uint64_t sequence = 0;
  int64_t start = 0, end = 0;
  std::vector<py::object> results;
};

class Recorder {
 public:
  Recorder(py::object recording, std::shared_ptr<Checker> checker)
      : recording_(std::move(recording)),
        main_(recording_.attr("main")),
        main_tensors_(main_.attr("tensors")),
        ops_(recording_.attr("ops")),
        number_in_python_(recording_.attr("registry").attr("number")),
        tensors_(recording_.attr("registry").attr("tensors").cast<std::shared_ptr<Tensors>>()),
        checker_(std::move(checker)) {}

  // Runs and records an op; false, with nothing done, if it is one for the Python recorder. Needs the GIL.
  bool record(const c10::OperatorHandle& op, Stack* stack) {
    const OpPlan& plan = plan_of(op);
    Inputs inputs;
    if (!plan.is_ours || !collect_all(plan, *stack, inputs)) {
      return false;
    }
    // As torch does for a mode in Python: it is off while the op runs, and while we ask Python about tensors.
    torch::torch_dispatch_mode::StashTorchDispatchModeGuard mode_off;
    Call call = begin(inputs);
    std::optional<CheckedCall> checked;
    if (checker_ != nullptr) {
      begin_check(checked, op, plan, *stack);
    }
    c10::impl::ForceDispatchKeyGuard lazy_bits(with_lazy_bits());
    try {
      py::gil_scoped_release no_gil;
      call.start = now_ns();
      op.callBoxed(stack);
      call.end = now_ns();
      if (checked.has_value()) {
        Checker::look(*checked, *stack);
      }
    } catch (const c10::Error& error) {
      fail(plan, call, error.what_without_backtrace());  // what() would look up the names of all C++ frames
      throw;
    } catch (...) {
      fail(plan, call, "");
      throw;
    }
    if (checked.has_value()) {
      settle(plan, call, *checked, *stack);
    }
    finish(plan, call, *stack);
    return true;
  }

 private:
  static bool collect_all(const OpPlan& plan, const Stack& stack, Inputs& inputs) {
    const size_t count = plan.is_input.size(), first = stack.size() - count;
    for (size_t place = 0; place < count; ++place) {
      if (plan.is_input[place] && !collect(stack[first + place], plan.is_result[place], inputs)) {
        return false;
      }
    }
    return true;
  }

  static bool collect(const c10::IValue& value, bool is_result, Inputs& inputs) {
    if (value.isTensor()) {
      const at::Tensor& tensor = value.toTensor();
      // A number that torch has wrapped for its own use reaches Python as a number.
      if (tensor.defined() && !tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
        inputs.push_back({&tensor, is_result});
        return is_plain(tensor);
      }
    } else if (value.isTensorList() || value.isList()) {
      for (const c10::IValue& item : value.toListRef()) {
        if (item.isInt() || item.isDouble()) {
          break;  // sizes and scales
        }
        if (!collect(item, is_result, inputs)) {
          return false;
        }
      }
    }
    return true;
  }

  Call begin(const Inputs& inputs) {
    static PyObject* const context = PyUnicode_InternFromString("context");
    Call call;
    call.context = attribute(main_, context);
    call.tensors = main_tensors_;
    guarded("place not described", [&] { stand(call, context); });
    call.first = PyList_GET_SIZE(call.tensors.ptr());
    append_all(call.tensors, "inputs not described", [&] {
      for (const Input& input : inputs) {
        const py::object& number = tensors_->number(*input.tensor, false);
        append(call.tensors, number);
        if (input.is_result) {
          call.results.push_back(number);
        }
      }
    });
    call.inputs = PyList_GET_SIZE(call.tensors.ptr()) - call.first;
    call.sequence = at::sequence_number::peek();
    return call;
  }

  // Where the call stands: its thread, autograd node and source line, as the Python recorder finds them.
  void stand(Call& call, PyObject* context) {
    static PyObject* const parent = PyUnicode_InternFromString("parent");
    const auto node = torch::autograd::get_current_node();
    if (node) {
      const NodeKind kind = kind_of(*node);
      call.node_type = kind.type;
      call.node = kind.accumulates
                      ? number(static_cast<const torch::autograd::AccumulateGrad&>(*node).variable, false)
                      : py::int_(node->sequence_nr());
      auto* frame = PyEval_GetFrame();
      if (frame != nullptr && is_engine(frame)) {
        return;
      }
      // One of autograd's threads for a device, which runs no Python; or a custom Function, a hook.
      py::object thread = recording_.attr("thread")();
      call.context = attribute(thread, context);
      call.tensors = thread.attr("tensors");
      call.place = place_of(python->place_at_node);
    } else if (PyLong_AsLong(attribute(main_, parent).ptr()) < 0) {
      call.place = place_of(python->user_place);
    }
  }

  static py::object place_of(const py::object& find) {
    auto* frame = PyEval_GetFrame();
    return frame == nullptr ? py::none() : find(py::handle(reinterpret_cast<PyObject*>(frame)));
  }

  static bool is_engine(PyFrameObject* frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    Py_DECREF(code);  // the frame holds it
    return reinterpret_cast<PyObject*>(code) == python->engine_code.ptr();
  }

  py::object number(const at::Tensor& tensor, bool fresh) {
    return is_plain(tensor) ? tensors_->number(tensor, fresh) : number_in_python_(tensor, fresh);
  }

  void begin_check(std::optional<CheckedCall>& checked, const c10::OperatorHandle& op, const OpPlan& plan, const Stack& stack) {
    try {
      checker_->begin(checked.emplace(op, plan.function, checker_->plan_of(plan.function)), stack);
    } catch (const py::error_already_set&) {
      throw;
    } catch (const std::exception&) {
      checked.reset();
      recording_.attr("skip")("not looked at: arguments unknown to the recorder");
    }
  }

  // What the check raises in Python is the error of this op.
  void settle(const OpPlan& plan, Call& call, const CheckedCall& checked, const Stack& stack) {
    try {
      checker_->settle(checked, stack);
    } catch (const py::error_already_set& error) {
      fail(plan, call, py::str(error.value()).cast<std::string>().c_str());
      throw;
    } catch (const std::exception&) {
      recording_.attr("skip")("not looked at: results unknown to the recorder");
    }
  }

  void finish(const OpPlan& plan, Call& call, const Stack& stack) {
    const size_t middle = call.first + call.inputs;
    append_all(call.tensors, "outputs not described", [&] {
      for (const py::object& result : call.results) {
        append(call.tensors, result);
      }
      for (size_t place = stack.size() - plan.returns; place < stack.size(); ++place) {
        note(call, stack[place]);
      }
    });
    write(plan, call, PyList_GET_SIZE(call.tensors.ptr()) - middle);
  }

  void note(Call& call, const c10::IValue& value) {
    if (value.isTensor()) {
      if (value.toTensor().defined()) {
        append(call.tensors, number(value.toTensor(), true));
      }
    } else if (value.isList()) {
      for (const c10::IValue& item : value.toListRef()) {
        note(call, item);
      }
    }
  }

  void fail(const OpPlan& plan, Call& call, const char* message) {
    py::error_scope raised;  // an error of Python's may be on its way
    call.end = now_ns();
    guarded("error not described", [&] {
      recording_.attr("failed_slot") = PyList_GET_SIZE(ops_.ptr());
      recording_.attr("failed_message") = py::str(message);
    });
    write(plan, call, 0);
  }

  void write(const OpPlan& plan, const Call& call, size_t outputs) {
    append_all(ops_, "row not written", [&] {
      append(ops_, plan.function);
      append(ops_, call.context);
      append(ops_, py::int_(call.sequence));
      append(ops_, call.node);
      append(ops_, call.node_type);
      append(ops_, py::int_(call.start));
      append(ops_, py::int_(call.end));
      append(ops_, call.place);
      append(ops_, py::int_(call.first));
      append(ops_, py::int_(call.inputs));
      append(ops_, py::int_(outputs));
    });
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
    } catch (const std::exception&) {
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
  py::object number_in_python_;
  std::shared_ptr<Tensors> tensors_;
  std::shared_ptr<Checker> checker_;  // null without opcheck
};

std::unordered_map<PyObject*, std::shared_ptr<Recorder>>& recorders() {
  static auto& by_mode = *new std::unordered_map<PyObject*, std::shared_ptr<Recorder>>();
  return by_mode;
}

struct RecordingTable final : ForwardingTable {
  using ForwardingTable::ForwardingTable;

  void dispatch(const c10::OperatorHandle& op, Stack* stack) const override {
    using c10::impl::TorchDispatchModeTLS;
    const int64_t modes = TorchDispatchModeTLS::stack_len();
    PyObject* mode = modes == 0 ? nullptr : TorchDispatchModeTLS::get_stack_at(modes - 1)->ptr(getPyInterpreter());
    // For everyone else's modes this comparison is all that is added.
    if (mode != nullptr && Py_TYPE(mode) == python->mode_type) {
      py::gil_scoped_acquire gil;
      auto found = recorders().find(mode);
      if (found != recorders().end()) {
        const std::shared_ptr<Recorder> recorder = found->second;
        if (recorder->record(op, stack)) {
          return;
        }
      }
    }
    next->dispatch(op, stack);
  }
};

// The table stays in place for good, as a thread of autograd's may be inside it at any time.
void install(py::type mode_type, py::object is_special, py::object user_place, py::object place_at_node,
             py::object engine_code) {
  if (python != nullptr) {
    return;
  }
  py::module_ torch_c = py::module_::import("torch._C");
  python = new Python{reinterpret_cast<PyTypeObject*>(mode_type.release().ptr()),
                      std::move(is_special),
                      std::move(user_place),
                      std::move(place_at_node),
                      torch_c.attr("_current_autograd_node"),
                      torch_c.attr("_FunctionBase"),
                      std::move(engine_code)};
  c10::impl::PyInterpreter* interpreter = getPyInterpreter();
  interpreter->vtable_ = new RecordingTable(interpreter->vtable_);
}

py::object number_if_plain(Tensors& tensors, const at::Tensor& tensor, bool fresh) {
  return is_plain(tensor) ? tensors.number(tensor, fresh) : py::none();
}

}  // namespace nbkit

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  using namespace nbkit;
  py::class_<Tensors, std::shared_ptr<Tensors>>(module, "Tensors")
      .def(py::init<py::list, py::list, py::dict>())
      .def("number", &number_if_plain)
      .def("forget", &Tensors::forget)
      .def("survivors", &Tensors::survivors)
      .def("storage_number",
           [](Tensors& tensors, py::handle storage, at::Device device) {
             return tensors.storage_of(torch::createStorage(storage.ptr()), device).number;
           })
      .def("find_storage", [](const Tensors& tensors, py::handle storage) {
        const auto* known = tensors.known_storage(torch::createStorage(storage.ptr()));
        return known == nullptr ? py::none() : known->number;
      });
  py::class_<Memory>(module, "Memory")
      .def(py::init<std::shared_ptr<Tensors>>())
      .def("note", &Memory::note)
      .def("was_finite", &Memory::was_finite);
  py::class_<Checker, std::shared_ptr<Checker>>(module, "Checker")
      .def(py::init<const Memory&, py::object>())
      .def("counts", &Checker::counts);
  module.def("install", &install);
  module.def("now_ns", &now_ns);
  module.def("start", [](py::handle mode, py::object recording, std::shared_ptr<Checker> checker) {
    recorders()[mode.ptr()] = std::make_shared<Recorder>(std::move(recording), std::move(checker));
  });
  module.def("stop", [](py::handle mode) { recorders().erase(mode.ptr()); });
  module.def("measure", &measured_tensors);
  module.def("integers", &integers);
  module.def("objects", &objects);
}
