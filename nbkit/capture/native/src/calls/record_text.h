// Pieces of records, as JSON.
#pragma once

#include <c10/core/Layout.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>

namespace nbkit {

namespace py = pybind11;

// Whether the strides are those of a new tensor: kernels choose by those of dimensions of size 1, too, which is_contiguous()
// passes over.
inline bool is_row_by_row(const at::Tensor& tensor) {
  int64_t step = 1;
  for (int64_t axis = tensor.dim() - 1; axis >= 0; --axis) {
    if (tensor.stride(axis) != step) {
      return false;
    }
    step *= std::max<int64_t>(tensor.size(axis), 1);
  }
  return true;
}

// As Python names it, without "torch.".
inline const char* dtype_name(c10::ScalarType dtype) { return torch::getTHPDtype(dtype)->name; }

inline const char* layout_name(c10::Layout layout) {
  return torch::getTHPLayout(layout)->name + std::string_view("torch.").size();
}

// A whole number, in decimal digits.
template <typename Number>
void append_number(std::string& text, Number number) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  text.append(digits.data(), static_cast<size_t>(end - digits.data()));
}

template <typename Number>
void append_number(std::string& text, std::string_view before, Number number) {
  text += before;
  append_number(text, number);
}

// As JSON, each after a comma but the first.
template <typename Items, typename Append>
void append_list(std::string& text, const Items& items, const Append& append) {
  text += '[';
  bool is_first = true;
  for (const auto& item : items) {
    if (!is_first) {
      text += ',';
    }
    is_first = false;
    append(item);
  }
  text += ']';
}

// As Python writes it.
inline void append_real(std::string& text, double number) {
  if (std::isfinite(number)) {
    const std::unique_ptr<char, decltype(&PyMem_Free)> digits(
        PyOS_double_to_string(number, 'r', 0, Py_DTSF_ADD_DOT_0, nullptr), &PyMem_Free);
    text += digits.get();
  } else {
    text += std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
  }
}

inline void append_numbers(std::string& text, c10::IntArrayRef numbers) {
  append_list(text, numbers, [&](int64_t number) { append_number(text, number); });
}

}  // namespace nbkit
