// What the record of a call follows from, but for values: its arguments, the shapes and places of its tensors, what is set.
// Calls with the same key have records that differ in their number and in the names of contents alone.
#pragma once

#include <ATen/autocast_mode.h>
#include <ATen/core/Generator.h>
#include <ATen/core/ivalue.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "../arguments.h"
#include "contents.h"
#include "../tensors.h"

namespace nbkit {

// What nbkit/capture/calls/state.py reads.
inline void append_state(Key& key) {
  const auto& context = at::globalContext();
  const bool is_cast = at::autocast::is_autocast_enabled(at::kCPU);
  key.push_back((c10::GradMode::is_enabled() ? 1 : 0) | (c10::InferenceMode::is_enabled() ? 2 : 0) |
                (context.deterministicAlgorithms() ? 4 : 0) | (is_cast ? 8 : 0) |
                static_cast<int64_t>(context.float32MatmulPrecision()) << 8);
  key.push_back(static_cast<int64_t>(c10::get_default_dtype_as_scalartype()) |
                (is_cast ? static_cast<int64_t>(at::autocast::get_autocast_dtype(at::kCPU)) << 8 : 0));
  key.push_back(at::get_num_threads());
}

// Keys that a sparse tensor of torch's own kind may have, besides its backend.
const uint64_t sparse_keys =
    (c10::DispatchKeySet({c10::DispatchKey::Sparse, c10::DispatchKey::SparseCsr, c10::DispatchKey::ADInplaceOrView}) |
     c10::autograd_dispatch_keyset | c10::autocast_dispatch_keyset)
        .raw_repr() |
    c10::full_backend_mask;

// Visits the tensors that a sparse one is made of, as layout_parts() in nbkit/capture/calls/memory.py lists them; false of a
// tensor of another layout.
template <typename Visit>
bool each_part(const at::Tensor& tensor, const Visit& visit) {
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if ((impl->key_set().raw_repr() & ~sparse_keys) != 0) {
    return false;
  }
  switch (impl->layout()) {
    case c10::kSparse: {
      const auto* sparse = static_cast<at::SparseTensorImpl*>(impl);
      visit(sparse->indices());
      visit(sparse->values());
      return true;
    }
    case c10::kSparseCsr:
    case c10::kSparseCsc:
    case c10::kSparseBsr:
    case c10::kSparseBsc: {
      const auto* sparse = static_cast<at::SparseCsrTensorImpl*>(impl);
      visit(sparse->compressed_indices());
      visit(sparse->plain_indices());
      visit(sparse->values());
      return true;
    }
    default:
      return false;
  }
}

// The keys of one call, before it runs and after it has, and the storages that its tensors lie in, in the order in which
// they are met.
class CallKey {
 public:
  // Sizes as in nbkit/capture/calls/memory.py.
  static constexpr int64_t alignment = 64, small = 64 << 10, most_unused = 4, most_checked = 64;

  Key begun, ended;
  std::vector<c10::Storage> storages;
  std::vector<at::Generator> generators;  // that it is given
  bool is_usual = true;  // else it has what Python has to look at: other layouts and types, generators of devices

  // Leaves no more than memory for another call.
  void clear() {
    begun.clear();
    ended.clear();
    storages.clear();
    generators.clear();
    used_.clear();
    is_usual = true;
    key_ = &begun;
  }

  // What is added from here on is known once the call has run.
  void end() { key_ = &ended; }

  void add(const c10::IValue& value) {
    if (value.isGenerator()) {
      add_generator(value.toGenerator());
      return;
    }
    append_argument(
        *key_, value, [&](const at::Tensor& tensor) { add_tensor(tensor); }, [&] { is_usual = false; });
  }

  // The sizes of the storages from a number on, and of those of which a part may do, whether the whole is stored.
  void add_sizes(size_t first, bool takes_whole, Contents& contents) {
    for (size_t number = 0; number < storages.size(); ++number) {
      const auto size = static_cast<int64_t>(storages[number].nbytes());
      key_->push_back(size);
      const int64_t count = std::max<int64_t>(used_[number].second - used_[number].first, 0);
      if (number >= first && !takes_whole && size > small && size > most_unused * count) {
        key_->push_back(size <= most_checked * count && contents.is_whole_known(storages[number]));
      }
    }
  }

 private:
  void add_generator(const at::Generator& generator) {
    is_usual = is_usual && generator.defined() && generator.device().is_cpu();
    key_->push_back(ArgumentTag::generator);
    generators.push_back(generator);
  }

  void add_tensor(const at::Tensor& tensor) {
    if (!is_plain(tensor)) {
      add_parts(tensor);
      return;
    }
    const c10::Storage& storage = tensor.storage();
    if (storage.data() == nullptr && storage.nbytes() > 0) {
      is_usual = false;
      return;
    }
    key_->push_back(ArgumentTag::tensor);
    key_->push_back(static_cast<int64_t>(number_of(storage, tensor)));
    key_->push_back((tensor.is_conj() ? 1 : 0) | (tensor.is_neg() ? 2 : 0) | static_cast<int64_t>(tensor.scalar_type()) << 8 |
                  static_cast<int64_t>(tensor.device().type()) << 16 | static_cast<int64_t>(tensor.device().index()) << 32);
    key_->push_back(tensor.storage_offset());
    key_->push_back(tensor.dim());
    key_->insert(key_->end(), tensor.sizes().begin(), tensor.sizes().end());
    key_->insert(key_->end(), tensor.strides().begin(), tensor.strides().end());
  }

  // The tensors that a sparse one is made of, and what it is besides.
  void add_parts(const at::Tensor& tensor) {
    PyObject* object = object_of(tensor);
    const bool is_known = object == nullptr || THPVariable_CheckExact(object);
    if (!is_known || !each_part(tensor, [&](const at::Tensor& part) { add_tensor(part); })) {
      is_usual = false;
      return;
    }
    const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    const bool is_coo = impl->layout() == c10::kSparse;
    key_->push_back(ArgumentTag::other);
    key_->push_back(static_cast<int64_t>(impl->layout()));
    key_->push_back(is_coo && static_cast<const at::SparseTensorImpl*>(impl)->coalesced());
    key_->push_back(impl->dim());
    key_->insert(key_->end(), impl->sizes().begin(), impl->sizes().end());
  }

  size_t number_of(const c10::Storage& storage, const at::Tensor& tensor) {
    size_t found = 0;
    while (found < storages.size() && storages[found].unsafeGetStorageImpl() != storage.unsafeGetStorageImpl()) {
      ++found;
    }
    if (found == storages.size()) {
      storages.push_back(storage);
      used_.emplace_back(std::numeric_limits<int64_t>::max(), 0);
    }
    if (tensor.numel() > 0) {
      const auto size = static_cast<int64_t>(tensor.element_size());
      const int64_t first = tensor.storage_offset() * size;
      int64_t last = 0;
      for (int64_t axis = 0; axis < tensor.dim(); ++axis) {
        last += (tensor.size(axis) - 1) * tensor.stride(axis);
      }
      auto& [start, end] = used_[found];
      start = std::min(start, first - first % alignment);
      end = std::max(end, first + (last + 1) * size);
    }
    return found;
  }

  Key* key_ = &begun;
  std::vector<std::pair<int64_t, int64_t>> used_;  // of each storage, the first byte and the one after the last
};

}  // namespace nbkit
