// Copies of an op's inputs, as they are and in the dtype of the reference: nbkit/capture/replay/copies.py.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "buffers.h"
#include "metrics.h"

namespace nbkit {

// The dtype that stands for another one on the reference.
inline c10::ScalarType wider(c10::ScalarType dtype) {
  if (c10::isComplexType(dtype)) {
    return c10::kComplexDouble;
  }
  const bool is_scale = dtype == c10::ScalarType::Float8_e8m0fnu || dtype == c10::ScalarType::Float4_e2m1fn_x2;
  return c10::isFloatingType(dtype) && !is_scale ? c10::kDouble : dtype;
}

// Whether the memory of different tensors that a call writes to may overlap; as overlap() in Python.
inline bool overlap(const std::vector<at::Tensor>& written) {
  std::vector<std::pair<const char*, const char*>> ranges;
  std::vector<const c10::TensorImpl*> known;
  for (const at::Tensor& tensor : written) {
    if (tensor.numel() == 0 || std::count(known.begin(), known.end(), tensor.unsafeGetTensorImpl()) != 0) {
      continue;
    }
    known.push_back(tensor.unsafeGetTensorImpl());
    int64_t last = 0;
    for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
      last += (tensor.size(dim) - 1) * tensor.stride(dim);
    }
    const auto* start = static_cast<const char*>(tensor.const_data_ptr());
    ranges.emplace_back(start, start + (last + 1) * static_cast<int64_t>(tensor.element_size()));
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t place = 1; place < ranges.size(); ++place) {
    if (ranges[place - 1].second > ranges[place].first) {
      return true;
    }
  }
  return false;
}

inline std::optional<Kind> kind_of(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::kDouble:
      return Kind::float64;
    case c10::kFloat:
      return Kind::float32;
    case c10::kBFloat16:
      return Kind::bfloat16;
    case c10::kHalf:
      return Kind::float16;
    default:
      return std::nullopt;
  }
}

// Whether a copy of its memory, in the order of that, is a copy with the strides that clone() and to() give.
inline bool is_dense(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.is_non_overlapping_and_dense() && !tensor.is_conj() && !tensor.is_neg();
}

inline at::Tensor cloned(const at::Tensor& tensor, Buffers& buffers) {
  if (!is_dense(tensor)) {
    return tensor.detach().clone();
  }
  at::Tensor copy = buffers.empty(tensor.sizes(), tensor.strides(), tensor.scalar_type(), tensor.numel());
  std::memcpy(copy.mutable_data_ptr(), tensor.const_data_ptr(), tensor.nbytes());
  return copy;
}

// A copy in the dtype of the reference.
inline at::Tensor widened(const at::Tensor& tensor, Buffers& buffers) {
  const std::optional<Kind> kind = kind_of(tensor.scalar_type());
  if (!kind.has_value() || !is_dense(tensor)) {
    return tensor.to(tensor.options().dtype(wider(tensor.scalar_type())), /*non_blocking=*/false, /*copy=*/true);
  }
  at::Tensor wide = buffers.empty(tensor.sizes(), tensor.strides(), c10::kDouble, tensor.numel());
  widen_all(tensor.const_data_ptr(), *kind, tensor.numel(), wide.mutable_data_ptr<double>());
  return wide;
}

}  // namespace nbkit
