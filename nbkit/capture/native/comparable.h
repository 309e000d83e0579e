// What can be compared natively: the dtypes, what each can hold, and what an op may add to its rounding.
#pragma once

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "metrics.h"

namespace nbkit {

struct Comparable {
  c10::ScalarType dtype;
  const char* name;
  Precision precision;  // of none where numbers are exact
  Kind kind;
};

// In the order of their numbers in a row; floating-point ones first.
const Comparable comparables[] = {
    {c10::kDouble, "float64", {52, -1022, std::numeric_limits<double>::max()}, Kind::float64},
    {c10::kFloat, "float32", {23, -126, 3.4028234663852886e38}, Kind::float32},
    {c10::kBFloat16, "bfloat16", {7, -126, 3.3895313892515355e38}, Kind::bfloat16},
    {c10::kHalf, "float16", {10, -14, 65504.0}, Kind::float16},
    {c10::kBool, "bool", {}, {}},
    {c10::kByte, "uint8", {}, {}},
    {c10::kChar, "int8", {}, {}},
    {c10::kShort, "int16", {}, {}},
    {c10::kInt, "int32", {}, {}},
    {c10::kLong, "int64", {}, {}},
};

inline const Comparable* comparable(c10::ScalarType dtype) {
  for (const Comparable& one : comparables) {
    if (one.dtype == dtype) {
      return &one;
    }
  }
  return nullptr;
}

// Under the threshold: see growth() of nbkit/numerics/noise_ratio.py.
inline double growth(std::vector<double> numels, double output_numel) {
  if (numels.empty() || output_numel == 0) {
    return 1.0;
  }
  std::sort(numels.begin(), numels.end(), std::greater<>());
  double length = numels[0] / output_numel;
  if (numels.size() > 1) {
    length = std::max(length, std::sqrt(numels[1]) * std::sqrt(length));
  }
  return std::min(std::max(std::sqrt(length) / 8, 1.0), 8.0);
}

}  // namespace nbkit
