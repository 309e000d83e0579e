// What a tensor's values are like: NaN or Inf among them, none that keeps its precision, or neither. Exact, in one pass
// over the memory, without Python: the exponent bits say it.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace nbkit {

enum class Values {
  absent,   // no numbers, or none that can fail to be finite
  plain,    // finite, and at least one is not subnormal
  tiny,     // finite, all of them zero or subnormal
  bad,      // a NaN or an Inf
  unknown,  // not to be read from here
};

// Without its sign, a number of the IEEE formats has the order of an integer. A Lane is such a number, or the half of a
// float64 that has sign and exponent; `mask` takes the sign, and the other halves, away.
template <typename Lane>
struct Lanes {
  static constexpr size_t bytes = 32, count = bytes / sizeof(Lane), block_bytes = 4 * bytes;
  static constexpr Lane no_sign = std::numeric_limits<Lane>::max();
  typedef Lane Vector __attribute__((vector_size(bytes)));  // of g++ and clang: of whatever the processor has
};

// Greatest lane of whole blocks. All that is written to is local: memory of type char may alias everything else.
template <typename Lane>
__attribute__((always_inline)) inline Lane greatest_in_blocks(const char* data, size_t blocks, const Lane* mask) {
  using Vector = typename Lanes<Lane>::Vector;
  Vector wanted, best[4] = {};
  std::memcpy(&wanted, mask, sizeof(wanted));
  for (; blocks != 0; --blocks, data += Lanes<Lane>::block_bytes) {
    for (size_t index = 0; index < 4; ++index) {
      Vector value;
      std::memcpy(&value, data + index * sizeof(value), sizeof(value));
      value &= wanted;
      best[index] = value > best[index] ? value : best[index];
    }
  }
  Lane greatest = 0;
  for (const Vector& vector : best) {
    for (size_t lane = 0; lane < Lanes<Lane>::count; ++lane) {
      greatest = std::max<Lane>(greatest, vector[lane]);
    }
  }
  return greatest;
}

#if defined(__x86_64__)
template <typename Lane>
__attribute__((target("avx2"))) Lane greatest_with_avx2(const char* data, size_t blocks, const Lane* mask) {
  return greatest_in_blocks(data, blocks, mask);
}
#endif

template <typename Lane>
Lane greatest_of(const char* data, size_t blocks, const Lane* mask) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2) {
    return greatest_with_avx2(data, blocks, mask);
  }
#endif
  return greatest_in_blocks(data, blocks, mask);
}

// The greatest magnitude among values.
template <typename Lane>
class Greatest {
 public:
  explicit Greatest(size_t itemsize) : itemsize_(itemsize) {
    const size_t lanes_per_item = itemsize / sizeof(Lane);
    for (size_t lane = 0; lane < Lanes<Lane>::count; ++lane) {
      mask_[lane] = lane % lanes_per_item == lanes_per_item - 1 ? Lanes<Lane>::no_sign : 0;
    }
  }

  // Values one after the other.
  void add(const char* data, size_t count) {
    constexpr size_t block = Lanes<Lane>::block_bytes;
    const size_t bytes = count * itemsize_, whole = bytes / block;
    if (whole != 0) {
      greatest_ = std::max(greatest_, greatest_of(data, whole, mask_));
    }
    if (bytes % block != 0) {
      char rest[block] = {};  // a zero is never the greatest
      std::memcpy(rest, data + whole * block, bytes % block);
      greatest_ = std::max(greatest_, greatest_of(rest, 1, mask_));
    }
  }

  // Values of any strides, in elements.
  void add(const char* data, at::IntArrayRef sizes, at::IntArrayRef strides) {
    if (sizes.empty()) {
      return add(data, 1);
    }
    const int64_t size = strides[0] == 0 ? 1 : sizes[0];  // expanded
    if (sizes.size() == 1 && (strides[0] == 1 || size == 1)) {
      return add(data, size);
    }
    for (int64_t index = 0; index < size; ++index, data += strides[0] * itemsize_) {
      if (sizes.size() > 1) {
        add(data, sizes.slice(1), strides.slice(1));
      } else {
        Lane value;
        std::memcpy(&value, data + itemsize_ - sizeof(Lane), sizeof(Lane));
        greatest_ = std::max<Lane>(greatest_, value & Lanes<Lane>::no_sign);
      }
    }
  }

  Lane greatest() const { return greatest_; }

 private:
  size_t itemsize_;
  Lane mask_[Lanes<Lane>::count], greatest_ = 0;
};

// Whether the memory of a tensor on the CPU is there, all of it: it may have been given back below the tensor.
inline bool is_at_hand(const at::Tensor& tensor) {
  const c10::StorageImpl* storage = tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  const auto bytes = storage->sym_nbytes().maybe_as_int();
  int64_t end = tensor.storage_offset() + 1;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    end += (tensor.size(dim) - 1) * tensor.stride(dim);
  }
  return storage->data() != nullptr && bytes.has_value() && end * int64_t(tensor.itemsize()) <= *bytes;
}

// `infinite` and `normal` are the lanes of Inf and of the smallest normal number.
template <typename Lane>
Values in_memory(const at::Tensor& tensor, Lane infinite, Lane normal) {
  Greatest<Lane> found(tensor.itemsize());
  const auto* data = static_cast<const char*>(tensor.const_data_ptr());
  if (tensor.unsafeGetTensorImpl()->is_non_overlapping_and_dense()) {
    found.add(data, tensor.numel());  // in whichever order
  } else {
    found.add(data, tensor.sizes(), tensor.strides());
  }
  return found.greatest() >= infinite ? Values::bad : found.greatest() >= normal ? Values::plain : Values::tiny;
}

// Plain if the mean says so: with a device or with many threads the quick way, and enough nearly always.
inline Values by_sum(const at::Tensor& tensor, double smallest_normal) {
  // Seen by no mode, recorded by no autograd, cast by no autocast.
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  c10::impl::ExcludeDispatchKeyGuard unseen(
      c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot}) |
      c10::autocast_dispatch_keyset);
  try {
    const double sum = std::abs(at::sum(tensor).item().toDouble());
    return std::isfinite(sum) && sum > smallest_normal * tensor.numel() ? Values::plain : Values::unknown;
  } catch (const std::exception&) {
    return Values::unknown;
  }
}

// Whether a tensor is of numbers that can fail to be finite.
inline bool is_inexact(const at::Tensor& tensor) {
  const auto type = tensor.scalar_type();
  return (at::isFloatingType(type) || at::isComplexType(type)) && tensor.numel() > 0;
}

// Whether it also has values.
inline bool is_readable(const at::Tensor& tensor) {
  return is_inexact(tensor) && !tensor.is_meta();
}

// Of a strided tensor. Needs no GIL.
inline Values values_of(const at::Tensor& tensor) {
  constexpr int64_t worth_threads = 1 << 18;
  const auto type = tensor.scalar_type();
  if (!is_inexact(tensor)) {
    return Values::absent;
  }
  if (tensor.is_meta()) {
    return Values::unknown;  // to be counted
  }
  if (type != at::kFloat && type != at::kDouble && type != at::kBFloat16 && type != at::kHalf) {
    return Values::unknown;  // complex numbers, float8
  }
  const bool is_here = tensor.device().is_cpu();
  if (is_here && !is_at_hand(tensor)) {
    return Values::unknown;
  }
  if (!is_here || (tensor.numel() >= worth_threads && at::get_num_threads() > 1)) {
    const double normal = type == at::kHalf ? 0x1p-14 : type == at::kDouble ? 0x1p-1022 : 0x1p-126;
    const Values values = by_sum(tensor, normal);
    if (!is_here || values == Values::plain) {
      return values;
    }
  }
  switch (type) {
    case at::kFloat: return in_memory<int32_t>(tensor, 0x7f800000, 0x00800000);
    case at::kDouble: return in_memory<int32_t>(tensor, 0x7ff00000, 0x00100000);
    case at::kBFloat16: return in_memory<int16_t>(tensor, 0x7f80, 0x0080);
    default: return in_memory<int16_t>(tensor, 0x7c00, 0x0400);
  }
}

}  // namespace nbkit
