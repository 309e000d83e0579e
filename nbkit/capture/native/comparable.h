// Measures a compared pair of tensors for opdiff's judge, where their dtypes are of the usual ones.
#pragma once

#include "metrics.h"
#include "tensors.h"

namespace nbkit {

struct Comparable {
  c10::ScalarType dtype;
  Precision precision;
  Kind kind;
};

inline const Comparable* comparable(c10::ScalarType dtype) {
  static const Comparable dtypes[] = {
      {c10::kDouble, {52, -1022, std::numeric_limits<double>::max()}, Kind::float64},
      {c10::kFloat, {23, -126, 3.4028234663852886e38}, Kind::float32},
      {c10::kBFloat16, {7, -126, 3.3895313892515355e38}, Kind::bfloat16},
      {c10::kHalf, {10, -14, 65504.0}, Kind::float16},
  };
  for (const Comparable& one : dtypes) {
    if (one.dtype == dtype) {
      return &one;
    }
  }
  return nullptr;
}

// Metrics of one pair for the judge, in the order of Metrics of nbkit/numerics/metrics.py; None where they are Python's work.
inline py::object measured_tensors(const at::Tensor& actual, const at::Tensor& expected) {
  const Comparable* known = comparable(actual.scalar_type());
  if (known == nullptr || expected.scalar_type() != c10::kDouble ||
      !is_plain(actual) || !is_plain(expected) || !actual.device().is_cpu() || !expected.device().is_cpu() ||
      !actual.is_contiguous() || !expected.is_contiguous() || actual.is_neg() || expected.is_neg() ||
      actual.numel() != expected.numel()) {
    return py::none();
  }
  std::optional<Measured> found;
  {
    py::gil_scoped_release no_gil;
    found = measure(actual.const_data_ptr(), known->kind, expected.const_data_ptr<double>(), actual.numel(),
                    known->precision);
  }
  return found.has_value() ? py::object(py::cast(bits_of<Columns>(*found))) : py::none();
}

}  // namespace nbkit
