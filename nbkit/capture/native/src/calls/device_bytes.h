// The bytes of a storage on a device, which are read by a copy on the CPU.
#pragma once

#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>
#include <c10/core/Storage.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "content_hash.h"

namespace nbkit {

// First byte in a storage, and number of bytes.
struct Part {
  int64_t start = 0, count = 0;
  bool operator<(const Part& other) const { return std::pair(start, count) < std::pair(other.start, other.count); }
};

class DeviceBytes {
 public:
  DeviceBytes(const c10::Storage& storage, Part part)
      : bytes_(at::empty({0}, at::device(storage.device()).dtype(at::kByte))) {
    bytes_.set_(storage, part.start, {part.count}, {1});
  }

  // A hash of them, which comes from the device in their place.
  int64_t hash() const { return hash(bytes_); }

  // The same of a copy: a hash of sums of words, in rows that overlap where words are left over. Of bytes that are no whole
  // words it is that of the bytes.
  static int64_t hash(const at::Tensor& bytes) {
    constexpr int64_t word = sizeof(int64_t), most_rows = 1024;
    if (bytes.numel() % word != 0 || bytes.storage_offset() % word != 0) {
      return hash_on_cpu(bytes);
    }
    const int64_t words = bytes.numel() / word;
    const auto rows = std::clamp(static_cast<int64_t>(std::sqrt(words)), int64_t{1}, most_rows);
    const int64_t step = words / rows;
    const at::Tensor in_rows = bytes.view(at::kLong).as_strided({rows, words - (rows - 1) * step}, {step, 1});
    return hash_on_cpu(at::sum(in_rows, {1}));
  }

  // On the CPU. What is pinned comes several times as fast, and its memory is used again.
  at::Tensor copy() const { return copied(bytes_, bytes_.is_cuda()); }

 private:
  static int64_t hash_on_cpu(const at::Tensor& values) {
    const at::Tensor copy = values.is_cpu() ? values : copied(values, false);
    return hash_of(static_cast<const char*>(copy.const_data_ptr()), copy.nbytes());
  }

  static at::Tensor copied(const at::Tensor& values, bool is_pinned) {
    at::Tensor copy = at::empty({values.numel()}, at::device(at::kCPU).dtype(values.scalar_type()).pinned_memory(is_pinned));
    copy.copy_(values);
    return copy;
  }

  // What is done here is no work of the step: in sight of no mode, and without gradients.
  const c10::impl::ExcludeDispatchKeyGuard in_no_mode_{
      c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot, c10::DispatchKey::ADInplaceOrView}) |
      c10::autograd_dispatch_keyset | c10::autocast_dispatch_keyset};
  at::Tensor bytes_;
};

}  // namespace nbkit
