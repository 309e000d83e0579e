// The native recorder as a Python module.

#include <memory>

#include "api_calls.h"
#include "line_log.h"
#include "values/metrics.h"
#include "observing.h"

namespace nbkit {

// What Python lends, once per process.
void install(py::object is_hidden, py::object is_reshaping, py::object code_kind, py::object node_location,
             py::object describe, py::object is_dtensor, py::object engine_code) {
  if (python != nullptr) {
    return;
  }
  py::module_ torch_c = py::module_::import("torch._C");
  python = new Python{std::move(is_hidden),
                      std::move(is_reshaping),
                      std::move(code_kind),
                      std::move(node_location),
                      torch_c.attr("_current_autograd_node"),
                      torch_c.attr("_FunctionBase"),
                      std::move(describe),
                      std::move(is_dtensor),
                      std::move(engine_code)};
}

py::object number_if_plain(Tensors& tensors, const at::Tensor& tensor, bool fresh) {
  return is_plain(tensor) ? py::object(py::int_(tensors.number(tensor, fresh))) : py::none();
}

}  // namespace nbkit

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  using namespace nbkit;
  bind_log<OpLog>(module, "OpLog");
  bind_log<TensorLog>(module, "TensorLog");
  bind_log<NumberLog>(module, "NumberLog");
  py::class_<Tensors, std::shared_ptr<Tensors>>(module, "Tensors")
      .def(py::init<std::shared_ptr<TensorLog>, py::list, py::dict>())
      .def("number", &number_if_plain)
      .def("forget", &Tensors::forget)
      .def("find", &Tensors::find)
      .def("survivors", &Tensors::survivors)
      .def("live_storages", &Tensors::live_storages)
      .def("storage_number",
           [](Tensors& tensors, py::handle storage, at::Device device) {
             return tensors.storage_of(torch::createStorage(storage.ptr()), device).number;
           })
      .def("find_storage", [](const Tensors& tensors, py::handle storage) {
        const auto* known = tensors.known_storage(torch::createStorage(storage.ptr()));
        return known == nullptr ? py::object(py::none()) : py::int_(known->number);
      });
  py::class_<Memory>(module, "Memory")
      .def(py::init<std::shared_ptr<Tensors>>())
      .def("note", &Memory::note)
      .def("was_finite", &Memory::was_finite);
  py::class_<Checker, std::shared_ptr<Checker>>(module, "Checker")
      .def(py::init<const Memory&, py::object>())
      .def("counts", &Checker::counts);
  py::class_<HeldStorage>(module, "HeldStorage")
      .def(py::init([](const at::Tensor& tensor) { return HeldStorage{tensor.storage()}; }))
      .def("nbytes", [](const HeldStorage& held) { return held.storage.nbytes(); })
      .def("data_ptr", [](const HeldStorage& held) { return reinterpret_cast<uintptr_t>(held.storage.data()); })
      .def_property_readonly("device", [](const HeldStorage& held) { return held.storage.device(); })
      .def_property_readonly("key", [](const HeldStorage& held) {
        return reinterpret_cast<uintptr_t>(held.storage.unsafeGetStorageImpl());
      });
  py::class_<Contents, std::shared_ptr<Contents>>(module, "Contents")
      .def(py::init<const py::object&, py::object, bool>(), py::arg("writer"), py::arg("reference"), py::arg("copies") = false)
      .def("put", [](Contents& contents, const py::buffer& buffer) { return contents.text_of(contents.put(buffer)); })
      .def("name", [](Contents& contents, const HeldStorage& held, int64_t start,
                      int64_t count) { return contents.text_of(contents.name(held.storage, {start, count})); })
      .def("is_whole_known", [](Contents& contents, const HeldStorage& held) { return contents.is_whole_known(held.storage); })
      .def("changed", [](Contents& contents, const HeldStorage& held) { contents.changed(held.storage); })
      .def("__len__", &Contents::count);
  py::class_<WriteJob>(module, "WriteJob").def("done", &WriteJob::is_done).def("result", &WriteJob::result);
  py::class_<FileWriter>(module, "FileWriter")
      .def(py::init<>())
      .def("submit", &FileWriter::submit)
      .def("shutdown", &FileWriter::shutdown);
  py::class_<Capturer, std::shared_ptr<Capturer>>(module, "Capturer")
      .def(py::init<const py::object&>())
      .def("ask_each", &Capturer::ask_each)
      .def("hand_over", &Capturer::hand_over)
      .def("tell_each", &Capturer::tell_each)
      .def("spent", &Capturer::spent);
  py::class_<ApiCalls, std::shared_ptr<ApiCalls>>(module, "ApiCalls")
      .def(py::init([](py::object recording, py::object method_wrapper, py::object gradient, py::object op_overload,
                       py::object capture, py::object resetting, py::object watched) {
        return std::make_shared<ApiCalls>(std::move(recording), ApiKinds{method_wrapper, gradient, op_overload, capture,
                                                                         resetting, watched});
      }))
      .def("function", &function_of)
      .def_property_readonly("getters", &ApiCalls::getters);
  module.def("install", &install);
  module.def("now_ns", &now_ns);
  module.def("observe", &observe);
  module.def("begin_own_work", [] { ++OwnWork::depth; });
  module.def("end_own_work", [] { --OwnWork::depth; });
  module.def("observing", &observing);
  module.def("pause_observing", &pause_observing);
  module.def("unobserve", &unobserve);
  module.def("begin_lines", &begin_lines);
  module.def("end_lines", &end_lines);
  module.def("measure", &measured_pair);
}
