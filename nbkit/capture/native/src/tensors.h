// Tensor identity and metadata for plain tensors: what nbkit/capture/raw/tensor_registry.py does, into the same records.
#pragma once

#include <c10/core/TensorImpl.h>
#include <c10/util/flat_hash_map.h>
#include <c10/util/hash.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/version.h>

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "log.h"

namespace nbkit {

namespace py = pybind11;

// Keys that a strided tensor of torch's own kind may have, besides its backend. An allow-list: sparse, nested,
// quantised and functorch's tensors, subclasses with a dispatch of their own and what a later torch adds are Python's.
const uint64_t plain_keys =
    (c10::DispatchKeySet({c10::DispatchKey::Dense, c10::DispatchKey::ADInplaceOrView, c10::DispatchKey::Conjugate,
                          c10::DispatchKey::Negative}) |
     c10::autograd_dispatch_keyset | c10::autocast_dispatch_keyset)
        .raw_repr() |
    c10::full_backend_mask;

// Whether the values of a tensor are those in its memory, as its sizes, strides and dtype say.
inline bool has_plain_memory(const at::Tensor& tensor) {
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  return (impl->key_set().raw_repr() & ~plain_keys) == 0 && impl->has_storage() && !impl->has_symbolic_sizes_strides();
}

// The Python object of a tensor, borrowed; null of most, which have none.
inline PyObject* object_of(const at::Tensor& tensor) {
#if TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR >= 210  // 2.10
  return tensor.unsafeGetTensorImpl()->pyobj_slot()->load_pyobj();
#else
  return tensor.unsafeGetTensorImpl()->pyobj_slot()->_unchecked_untagged_pyobj();
#endif
}

// Whether all that is to be known of a tensor follows from its sizes, strides, dtype and storage. Needs the GIL.
inline bool is_plain(const at::Tensor& tensor) {
  if (!has_plain_memory(tensor)) {
    return false;
  }
  PyObject* object = object_of(tensor);  // it may be of a subclass that only Python knows
  return object == nullptr || THPVariable_CheckExact(object);
}

// Integers that are looked up as one: what they say of a tensor, or of a call.
using Key = std::vector<int64_t>;
using KeyHash = c10::hash<Key>;

inline void append(const py::object& list, const py::object& item) {
  if (PyList_Append(list.ptr(), item.ptr()) != 0) {
    throw py::error_already_set();
  }
}

class Tensors {
 public:
  Tensors(std::shared_ptr<TensorLog> records, py::list devices, py::dict geometries)
      : records_(std::move(records)), devices_(std::move(devices)), geometries_(std::move(geometries)) {}

  // Number of a plain tensor, `fresh` if it came out of an op just now, and held `by_storage` if it may become a
  // parameter: torch.utils.swap_tensors, which Module.to may use, refuses tensors that have weak references.
  int64_t number(const at::Tensor& tensor, bool fresh, bool by_storage = false) {
    c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    auto found = known_.find(impl);
    if (found != known_.end()) {
      // The address of a tensor cannot come back while a weak reference to it is held; that of one that is known by
      // its storage can.
      const Known& known = found->second;
      const bool is_same = !known.storage.has_value() ||
                           (known.storage->_unsafe_get_target() == impl->unsafe_storage().unsafeGetStorageImpl() &&
                            (known.geometry < 0 || known.geometry == geometry_code(tensor)));
      if (is_same && !(fresh && by_storage)) {
        return known.number;
      }
      known_.erase(found);
    }
    return learn(tensor, impl, fresh, by_storage);
  }

  void forget(const at::Tensor& tensor) { known_.erase(tensor.unsafeGetTensorImpl()); }

  using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;
  struct Storage {
    WeakStorage storage;
    int64_t number;
    std::optional<bool> is_finite;  // opcheck's: whether all that ops have written to it is
  };

  // What is known of a storage, made if need be.
  Storage& storage_of(const c10::Storage& storage, c10::Device device) {
    c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
    auto found = storages_.find(impl);
    if (found == storages_.end()) {
      found = storages_.emplace(impl, Storage{storage.getWeakStorageImpl(), static_cast<int64_t>(devices_.size()), {}}).first;
      append(devices_, device_object(device));
      new_bytes_ += impl->sym_nbytes().maybe_as_int().value_or(0);
    }
    return found->second;
  }

  // The same of one that was met before, else null.
  const Storage* known_storage(const c10::Storage& storage) const {
    auto found = storages_.find(storage.unsafeGetStorageImpl());
    return found == storages_.end() ? nullptr : &found->second;
  }

  // The numbers of a plain tensor's storage and geometry, None if they were not both met by this recorder.
  py::object find(const at::Tensor& tensor) {
    if (!has_plain_memory(tensor)) {
      return py::none();
    }
    const Storage* storage = known_storage(tensor.storage());
    const auto code = codes_.find(geometry_of(tensor));
    if (storage == nullptr || code == codes_.end()) {
      return py::none();
    }
    return py::make_tuple(storage->number, code->second);
  }

  // Whether each tensor that is alive requires a gradient, by number; leaves that are known by their storage left out.
  py::dict survivors() const {
    py::dict alive;
    for (const auto& [impl, entry] : known_) {
      if (entry.tensor.has_value()) {
        if (auto tensor = entry.tensor->lock()) {
          alive[py::int_(entry.number)] = tensor->requires_grad();
        }
      }
    }
    return alive;
  }

  // The numbers of the storages that are still in use.
  py::list live_storages() const {
    py::list alive;
    for (const auto& [impl, known] : storages_) {
      if (!known.storage.expired()) {
        alive.append(known.number);
      }
    }
    return alive;
  }

 private:
  using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  // One of the two is held. A weak reference keeps the few bytes of the object itself, never a tensor's data.
  struct Known {
    std::optional<WeakTensor> tensor;
    std::optional<WeakStorage> storage;
    int64_t number;
    int64_t geometry = -1;  // if a later view of the storage may be met at the same address
  };
  int64_t learn(const at::Tensor& tensor, c10::TensorImpl* impl, bool fresh, bool by_storage) {
    sweep_if_due();
    const c10::Storage& storage = impl->unsafe_storage();
    // An op's output is marked by autograd only after it has left the dispatcher: asking is of no use yet.
    const bool requires_grad = !fresh && tensor.requires_grad();
    const int64_t geometry = geometry_code(tensor);
    const int64_t memory = storage_of(storage, tensor.device()).number;
    const auto number = static_cast<int64_t>(records_->add({{}, {fresh, memory, geometry, requires_grad}}));
    Known entry{std::nullopt, std::nullopt, number};
    if (by_storage || (requires_grad && tensor.is_leaf())) {
      entry.storage = storage.getWeakStorageImpl();
      entry.geometry = by_storage ? geometry : -1;
    } else {
      entry.tensor = WeakTensor(tensor.getIntrusivePtr());
    }
    known_.emplace(impl, std::move(entry));
    forget_if_dead(std::exchange(recent_[number % recent_.size()], impl));
    return number;
  }

  const Key& geometry_of(const at::Tensor& tensor) {
    const auto sizes = tensor.sizes(), strides = tensor.strides();
    scratch_.assign({static_cast<int64_t>(tensor.scalar_type()), tensor.storage_offset()});
    scratch_.insert(scratch_.end(), sizes.begin(), sizes.end());
    scratch_.insert(scratch_.end(), strides.begin(), strides.end());
    return scratch_;
  }

  int64_t geometry_code(const at::Tensor& tensor) {
    auto found = codes_.find(geometry_of(tensor));
    if (found == codes_.end()) {
      const auto sizes = tensor.sizes(), strides = tensor.strides();
      // The same key as Python makes: tensors that are not plain share the numbers.
      auto dtype = py::reinterpret_borrow<py::object>((PyObject*)torch::getTHPDtype(tensor.scalar_type()));
      py::object key = py::make_tuple(as_tuple(sizes), as_tuple(strides), tensor.storage_offset(), dtype);
      const auto code = geometries_.attr("setdefault")(key, geometries_.size()).cast<int64_t>();
      found = codes_.emplace(scratch_, code).first;
    }
    return found->second;
  }

  static py::tuple as_tuple(at::IntArrayRef values) {
    py::tuple result(values.size());
    for (size_t index = 0; index < values.size(); ++index) {
      result[index] = values[index];
    }
    return result;
  }

  const py::object& device_object(c10::Device device) {
    if (!device_.has_value() || *device_ != device) {
      device_ = device;
      device_object_ = py::cast(device);
    }
    return device_object_;
  }

  // Most tensors die young: their memory serves the next ones, if nothing here holds it.
  void forget_if_dead(c10::TensorImpl* impl) {
    const auto found = known_.find(impl);
    if (found != known_.end() && found->second.tensor.has_value() && found->second.tensor->expired()) {
      known_.erase(found);
    }
  }

  // Lets go of tensors that have died. What is left of them lies between the large blocks that they held and keeps
  // malloc from joining those: so it is time whenever a megabyte or more has been allocated, or the dead may be most.
  void sweep_if_due() {
    if (known_.size() < most_tensors_ && new_bytes_ < most_bytes_) {
      return;
    }
    for (auto entry = known_.begin(); entry != known_.end();) {
      const Known& known = entry->second;
      const bool died = known.tensor.has_value() ? known.tensor->expired() : known.storage->expired();
      entry = died ? known_.erase(entry) : std::next(entry);
    }
    for (auto entry = storages_.begin(); entry != storages_.end();) {
      entry = entry->second.storage.expired() ? storages_.erase(entry) : std::next(entry);
    }
    most_tensors_ = 2 * known_.size() + 1000;
    most_bytes_ = known_.size() * (2 << 10) + (1 << 20);  // each one looked at is paid by 2 KiB of new memory
    new_bytes_ = 0;
  }

  std::shared_ptr<TensorLog> records_;
  py::list devices_;
  py::dict geometries_;
  ska::flat_hash_map<c10::TensorImpl*, Known> known_;
  std::array<c10::TensorImpl*, 64> recent_{};  // those that were met last
  ska::flat_hash_map<c10::StorageImpl*, Storage> storages_;
  std::unordered_map<Key, int64_t, KeyHash> codes_;  // of dtype, offset, sizes and strides
  Key scratch_;
  std::optional<c10::Device> device_;
  py::object device_object_;
  size_t most_tensors_ = 1000, most_bytes_ = 1 << 20, new_bytes_ = 0;
};

}  // namespace nbkit
