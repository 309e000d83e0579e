// The storages that the tensors of one call lie in, and which part of each is stored: as CallTaker._place() in Python
// (nbkit/capture/calls/taking.py).
#pragma once

#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "contents.h"
#include "../tensors.h"

namespace nbkit {

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

// Visits the storages that a tensor lies in.
template <typename Visit>
void each_storage(const at::Tensor& tensor, const Visit& visit) {
  if (!each_part(tensor, [&](const at::Tensor& part) { visit(part.storage()); })) {
    visit(tensor.storage());
  }
}

// Something about each storage of a call.
using Flags = c10::SmallVector<bool, 16>;

struct CallStorage {
  c10::Storage storage;
  int64_t size = 0;  // in bytes, when it was met
  int64_t first = std::numeric_limits<int64_t>::max(), last = 0;  // bytes that tensors use
  Part span;  // what is stored of it
  std::optional<Name> before, after;

  // What the record has after the call: all where the op has made room.
  Part span_after() const {
    const auto now = static_cast<int64_t>(storage.nbytes());
    return now == size ? span : Part{0, now};
  }
};

class CallStorages {
 public:
  // In the order in which they are met.
  std::vector<CallStorage> all;

  void clear() {
    all.clear();
    placed_ = 0;
  }

  // Meets the memory of a tensor; false of one that Python has to look at.
  bool meet(const at::Tensor& tensor) {
    if (!is_plain(tensor)) {
      PyObject* object = object_of(tensor);
      bool is_known = object == nullptr || THPVariable_CheckExact(object);
      return is_known && each_part(tensor, [&](const at::Tensor& part) { is_known = meet(part) && is_known; }) && is_known;
    }
    const c10::Storage& storage = tensor.storage();
    if (storage.data() == nullptr && storage.nbytes() > 0) {
      return false;
    }
    CallStorage& met = all[number_of(storage)];
    if (tensor.numel() > 0) {
      const auto size = static_cast<int64_t>(tensor.element_size());
      const int64_t first = tensor.storage_offset() * size;
      int64_t last = 0;
      for (int64_t axis = 0; axis < tensor.dim(); ++axis) {
        last += (tensor.size(axis) - 1) * tensor.stride(axis);
      }
      met.first = std::min(met.first, first - first % alignment);
      met.last = std::max(met.last, first + (last + 1) * size);
    }
    return true;
  }

  // Says of which part of those that were met since the last time the values are stored.
  void place(bool takes_whole, Contents& contents) {
    for (; placed_ < all.size(); ++placed_) {
      CallStorage& one = all[placed_];
      const int64_t count = std::max<int64_t>(one.last - one.first, 0);
      const bool is_whole = takes_whole || one.size <= small || one.size <= most_unused * count ||
                            (one.size <= most_checked * count && contents.is_whole_known(one.storage));
      one.span = is_whole ? Part{0, one.size} : Part{count > 0 ? one.first : 0, count};
    }
  }

  // Names the contents of those that were met first, but for what the call does not read.
  void name_before(const Flags& is_unread, Contents& contents) {
    for (size_t number = 0; number < is_unread.size(); ++number) {
      if (all[number].span.count > 0 && !is_unread[number]) {
        all[number].before = contents.name(all[number].storage, all[number].span);
      }
    }
  }

  void name_after(const Flags& is_changed, Contents& contents) {
    for (size_t number = 0; number < is_changed.size(); ++number) {
      const Part span = all[number].span_after();
      if (span.count > 0 && is_changed[number]) {
        all[number].after = contents.name(all[number].storage, span);
      }
    }
  }

  // Visits the numbers of those that a tensor lies in, which were met.
  template <typename Visit>
  void each_number(const at::Tensor& tensor, const Visit& visit) {
    each_storage(tensor, [&](const c10::Storage& storage) { visit(number_of(storage)); });
  }

  // One that was not met is added.
  size_t number_of(const c10::Storage& storage) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const CallStorage& one) {
      return one.storage.unsafeGetStorageImpl() == storage.unsafeGetStorageImpl();
    });
    if (found != all.end()) {
      return static_cast<size_t>(found - all.begin());
    }
    all.push_back({storage, static_cast<int64_t>(storage.nbytes())});
    return all.size() - 1;
  }

 private:
  // As in nbkit/capture/calls/memory.py.
  static constexpr int64_t alignment = 64, small = 64 << 10, most_unused = 4, most_checked = 64;

  size_t placed_ = 0;
};

}  // namespace nbkit
