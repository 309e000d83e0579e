// A virtual table of torch's Python interpreter that passes everything on to another one. With a torch that has other
// virtual functions it does not compile, and the Python recorder stays in use.
#pragma once

#include <c10/core/impl/PyInterpreter.h>

#include <string>

#include "torch_version.h"

namespace nbkit {

// Names are torch's; `next` is the table that was in place before.
struct ForwardingTable : c10::impl::PyInterpreterVTable {
  explicit ForwardingTable(const PyInterpreterVTable* next) : next(next) {}
  const PyInterpreterVTable* next;

  using Op = c10::OperatorHandle;
  using Impl = c10::TensorImpl;
  using Type = c10::DeviceType;

  std::string name() const override { return next->name(); }
  void incref(PyObject* object) const override { next->incref(object); }
#if NBKIT_TORCH >= 210
  void decref(PyObject* object) const override { next->decref(object); }
  bool try_incref(const c10::impl::PyObjectSlot& slot) const override { return next->try_incref(slot); }
  size_t refcnt(PyObject* object) const override { return next->refcnt(object); }
#else
  void decref(PyObject* object, bool has_slot) const override { next->decref(object, has_slot); }
#endif
  c10::intrusive_ptr<Impl> detach(const Impl* self) const override { return next->detach(self); }
  void dispatch(const Op& op, torch::jit::Stack* stack) const override { next->dispatch(op, stack); }
  void reportErrorCallback(PyObject* callback, c10::DispatchKey key) const override {
    next->reportErrorCallback(callback, key);
  }
  void python_op_registration_trampoline(const Op& op, c10::DispatchKey key, c10::DispatchKeySet keys,
                                         torch::jit::Stack* stack, bool with_keyset, bool with_op) const override {
    next->python_op_registration_trampoline(op, key, keys, stack, with_keyset, with_op);
  }
  void throw_abstract_impl_not_imported_error(std::string op, const char* module, const char* context) const override {
    next->throw_abstract_impl_not_imported_error(std::move(op), module, context);
  }
  void python_dispatcher(const Op& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) const override {
    next->python_dispatcher(op, keys, stack);
  }
  bool is_contiguous(const Impl* self, at::MemoryFormat format) const override {
    return next->is_contiguous(self, format);
  }
#if NBKIT_TORCH >= 209
  c10::SymBool sym_is_contiguous(const Impl* self, at::MemoryFormat format) const override {
    return next->sym_is_contiguous(self, format);
  }
#endif
  bool is_strides_like(const Impl* self, at::MemoryFormat format) const override {
    return next->is_strides_like(self, format);
  }
  bool is_non_overlapping_and_dense(const Impl* self) const override {
    return next->is_non_overlapping_and_dense(self);
  }
  c10::Device device(const Impl* self) const override { return next->device(self); }
  int64_t dim(const Impl* self) const override { return next->dim(self); }
  c10::IntArrayRef strides(const Impl* self) const override { return next->strides(self); }
  c10::IntArrayRef sizes(const Impl* self) const override { return next->sizes(self); }
  c10::SymIntArrayRef sym_sizes(const Impl* self) const override { return next->sym_sizes(self); }
  c10::Layout layout(const Impl* self) const override { return next->layout(self); }
  int64_t numel(const Impl* self) const override { return next->numel(self); }
  c10::SymInt sym_numel(const Impl* self) const override { return next->sym_numel(self); }
  c10::SymIntArrayRef sym_strides(const Impl* self) const override { return next->sym_strides(self); }
  c10::SymInt sym_storage_offset(const Impl* self) const override { return next->sym_storage_offset(self); }
  void trace_gpu_event_creation(Type type, uintptr_t event) const override {
    next->trace_gpu_event_creation(type, event);
  }
  void trace_gpu_event_deletion(Type type, uintptr_t event) const override {
    next->trace_gpu_event_deletion(type, event);
  }
  void trace_gpu_event_record(Type type, uintptr_t event, uintptr_t stream) const override {
    next->trace_gpu_event_record(type, event, stream);
  }
  void trace_gpu_event_wait(Type type, uintptr_t event, uintptr_t stream) const override {
    next->trace_gpu_event_wait(type, event, stream);
  }
  void trace_gpu_memory_allocation(Type type, uintptr_t memory) const override {
    next->trace_gpu_memory_allocation(type, memory);
  }
  void trace_gpu_memory_deallocation(Type type, uintptr_t memory) const override {
    next->trace_gpu_memory_deallocation(type, memory);
  }
  void trace_gpu_stream_creation(Type type, uintptr_t stream) const override {
    next->trace_gpu_stream_creation(type, stream);
  }
  void trace_gpu_device_synchronization(Type type) const override { next->trace_gpu_device_synchronization(type); }
  void trace_gpu_stream_synchronization(Type type, uintptr_t stream) const override {
    next->trace_gpu_stream_synchronization(type, stream);
  }
  void trace_gpu_event_synchronization(Type type, uintptr_t event) const override {
    next->trace_gpu_event_synchronization(type, event);
  }
  void reset_backward_hooks(const Impl* self) const override { next->reset_backward_hooks(self); }
};

}  // namespace nbkit
