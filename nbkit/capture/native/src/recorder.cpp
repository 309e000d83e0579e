// The native recorder as a Python module: while a recording is on, it takes ops over from the Python modes of torch.

#include "recorder.h"

#include <memory>

#include "columns.h"
#include "forwarding.h"
#include "metrics.h"
#include "observing.h"

namespace nbkit {

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
void install(py::type mode_type, py::object is_special, py::object is_hidden, py::object is_reshaping,
             py::object user_location, py::object node_location, py::object engine_code) {
  if (python != nullptr) {
    return;
  }
  py::module_ torch_c = py::module_::import("torch._C");
  python = new Python{reinterpret_cast<PyTypeObject*>(mode_type.release().ptr()),
                      std::move(is_special),
                      std::move(is_hidden),
                      std::move(is_reshaping),
                      std::move(user_location),
                      std::move(node_location),
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
      .def("live_storages", &Tensors::live_storages)
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
  module.def("observe", &observe);
  module.def("begin_own_work", [] { ++OwnWork::depth; });
  module.def("end_own_work", [] { --OwnWork::depth; });
  module.def("observing", &observing);
  module.def("pause_observing", &pause_observing);
  module.def("unobserve", &unobserve);
  module.def("measure", &measured_pair);
  module.def("integers", &integers);
  module.def("objects", &objects);
}
