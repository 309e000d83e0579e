// Memory for copies that live as long as one comparison: what was used last is still in the cache.
#pragma once

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <vector>

namespace nbkit {

class Buffers {
 public:
  // An uninitialised tensor on the CPU; larger ones are torch's own. The storage has room to spare.
  at::Tensor empty(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype, int64_t numel) {
    const auto size = static_cast<uint64_t>(numel) * c10::elementSize(dtype);
    if (size > most_bytes) {
      return at::detail::empty_strided_cpu(sizes, strides, dtype);
    }
    auto impl = c10::make_intrusive<c10::TensorImpl>(storage(std::bit_ceil(std::max<uint64_t>(size, least_bytes))),
                                                     c10::DispatchKeySet(c10::DispatchKey::CPU),
                                                     c10::scalarTypeToTypeMeta(dtype));
    impl->set_sizes_and_strides(sizes, strides);
    return at::Tensor(std::move(impl));
  }

 private:
  static constexpr uint64_t least_bytes = 1 << 10, most_bytes = 1 << 20, kept_bytes = 8 << 20;

  c10::Storage storage(uint64_t size) {
    const std::lock_guard<std::mutex> one_at_a_time(lock_);
    for (auto one = kept_.rbegin(); one != kept_.rend(); ++one) {
      if (one->nbytes() == size && one->use_count() == 1) {
        std::rotate(one.base() - 1, one.base(), kept_.end());
        return kept_.back();
      }
    }
    c10::Storage made = at::detail::empty_cpu({static_cast<int64_t>(size)}, c10::kByte).storage();
    if (held_ + size <= kept_bytes) {
      kept_.push_back(made);
      held_ += size;
    }
    return made;
  }

  std::mutex lock_;
  std::vector<c10::Storage> kept_;  // the last used one comes last
  uint64_t held_ = 0;
};

}  // namespace nbkit
