// The bytes of a storage on a device, which are read by a copy on the CPU.
#pragma once

#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>
#include <c10/core/Storage.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstdint>
#include <optional>
#include <utility>

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

  // Their sum by the words of 8 bytes, as summed() has it; none where there is a rest of some bytes.
  std::optional<int64_t> sum() const {
    constexpr int64_t word = sizeof(int64_t);
    if (bytes_.numel() % word != 0 || bytes_.storage_offset() % word != 0) {
      return std::nullopt;
    }
    return at::sum(bytes_.view(at::kLong)).item<int64_t>();
  }

  // On the CPU. What is pinned comes several times as fast, and its memory is used again.
  at::Tensor copy() const {
    const auto options = at::device(at::kCPU).dtype(at::kByte).pinned_memory(bytes_.is_cuda());
    at::Tensor copy = at::empty({bytes_.numel()}, options);
    copy.copy_(bytes_);
    return copy;
  }

 private:
  // What is done here is no work of the step: in sight of no mode, and without gradients.
  const c10::impl::ExcludeDispatchKeyGuard in_no_mode_{
      c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot, c10::DispatchKey::ADInplaceOrView}) |
      c10::autograd_dispatch_keyset | c10::autocast_dispatch_keyset};
  at::Tensor bytes_;
};

}  // namespace nbkit
