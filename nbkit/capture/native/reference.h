// A call run again in float64: what nbkit/capture/rerun does, for plain tensors on the CPU.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "arguments.h"
#include "metrics.h"

namespace nbkit {

using torch::jit::Stack;

// An eighth of PIECE of nbkit/capture/rerun/pieces.py: an op costs less to call from here, and its buffers stay in L2.
constexpr int64_t piece_length = 1 << 12;

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

inline at::Tensor widened(const at::Tensor& tensor) {
  return tensor.to(tensor.options().dtype(wider(tensor.scalar_type())), /*non_blocking=*/false, /*copy=*/true);
}

// A piece of a tensor that lies in order in memory, widened for the op that is run on it; a scalar as a whole.
class Piece {
 public:
  explicit Piece(const at::Tensor& tensor) : tensor_(tensor), kind_(kind_of(tensor.scalar_type())) {}

  at::Tensor now;

  bool is_of(const at::Tensor& tensor) const { return tensor.is_same(tensor_); }

  void move_to(int64_t start, int64_t end) {
    if (tensor_.dim() == 0) {
      now = now.defined() ? now : widened(tensor_);
      return;
    }
    if (!kind_.has_value()) {
      now = widened(tensor_.view(-1).slice(0, start, end));
      return;
    }
    if (!now.defined() || now.numel() != end - start) {
      now = at::empty({end - start}, tensor_.options().dtype(c10::kDouble));
    }
    const auto* from = static_cast<const char*>(tensor_.const_data_ptr()) + start * tensor_.element_size();
    widen_all(from, *kind_, end - start, now.mutable_data_ptr<double>());
  }

 private:
  static std::optional<Kind> kind_of(c10::ScalarType dtype) {
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

  const at::Tensor tensor_;
  const std::optional<Kind> kind_;
};

// What is the same at every call of an op.
struct DiffPlan {
  py::object function;
  int left_out = -1;  // number of the reason why it is never compared
  bool is_ours = false;
  bool is_pointwise = false;
  int dropout = -1;  // of an op that is random with it: the argument's number
  bool writes = false;
  std::vector<bool> is_written, is_dtype;  // of each argument
  size_t returns = 0;
};

// The compared tensors: what was returned, then what was written to and not returned.
inline std::vector<at::Tensor> results_of(const Stack& out, const std::vector<at::Tensor>& written) {
  std::vector<at::Tensor> results;
  for (const c10::IValue& value : out) {
    each_operand(value, [&](const at::Tensor& tensor) { results.push_back(tensor); });
  }
  const size_t returned = results.size();
  for (const at::Tensor& tensor : written) {
    const auto end = results.begin() + returned;
    if (std::none_of(results.begin(), end, [&](const at::Tensor& one) { return one.is_same(tensor); })) {
      results.push_back(tensor);
    }
  }
  return results;
}

// A call with copies of its inputs from before it ran.
class Rerun {
 public:
  Rerun(const c10::OperatorHandle& op, const DiffPlan& plan, const Stack& given)
      : op_(op), plan_(plan), in_pieces(plan.is_pointwise && fits_pieces(plan, given)) {
    inputs.reserve(given.size());
    for (size_t place = 0; place < given.size(); ++place) {
      inputs.push_back(mapped(given[place], [&](const at::Tensor& tensor) { return copied(tensor, given); }));
      if (plan.is_dtype[place] && given[place].isInt() && !in_pieces) {
        inputs.back() = static_cast<int64_t>(wider(static_cast<c10::ScalarType>(given[place].toInt())));
      }
    }
  }

  // What the reference returns; `written` becomes what it has made of the arguments that it writes to.
  Stack run(std::vector<at::Tensor>& written) const {
    if (in_pieces) {
      return {pieced()};
    }
    return run_with(inputs, written);
  }

  // The same of other inputs, which are not done in pieces.
  Stack run_with(Stack stack, std::vector<at::Tensor>& written) const {
    for (size_t place = 0; plan_.writes && place < stack.size(); ++place) {
      if (plan_.is_written[place]) {
        stack[place] = mapped(stack[place], [&](const at::Tensor& tensor) {
          written.push_back(tensor.clone());
          return written.back();
        });
      }
    }
    op_.callBoxed(&stack);
    return stack;
  }

  // Inputs that were not copied, as they have not changed yet, are now: from here on the step goes on.
  void keep() {
    for (c10::IValue& value : inputs) {
      value = mapped(value, [&](const at::Tensor& tensor) {
        return std::find_if(uncopied_.begin(), uncopied_.end(), [&](const at::Tensor& one) {
                 return one.is_same(tensor);
               }) == uncopied_.end() ? tensor : tensor.detach().clone();
      });
    }
  }

 private:
  const c10::OperatorHandle& op_;
  const DiffPlan& plan_;
  std::vector<std::pair<const c10::TensorImpl*, at::Tensor>> copies_;
  std::vector<at::Tensor> uncopied_;

 public:
  Stack inputs;
  const bool in_pieces;

 private:
  static bool fits_pieces(const DiffPlan& plan, const Stack& given) {
    const at::Tensor* large = nullptr;
    bool fits = plan.returns == 1;
    for (const c10::IValue& value : given) {
      fits = fits && !value.isList() && !value.isTensorList();
      const at::Tensor* tensor = fits ? tensor_of(value) : nullptr;
      if (tensor != nullptr && tensor->dim() > 0) {
        large = large == nullptr ? tensor : large;
        fits = tensor->is_contiguous() && tensor->sizes() == large->sizes();
      }
    }
    return fits && large != nullptr && large->numel() > piece_length;
  }

  // One tensor becomes one tensor, wherever it stands.
  at::Tensor copied(const at::Tensor& tensor, const Stack& given) {
    for (const auto& [known, copy] : copies_) {
      if (known == tensor.unsafeGetTensorImpl()) {
        return copy;
      }
    }
    at::Tensor copy = !in_pieces ? widened(tensor) : is_changed(tensor, given) ? tensor.detach().clone() : tensor;
    if (copy.is_same(tensor)) {
      uncopied_.push_back(tensor);
    }
    copies_.emplace_back(tensor.unsafeGetTensorImpl(), copy);
    return copy;
  }

  // Whether the call writes to this tensor's memory.
  bool is_changed(const at::Tensor& tensor, const Stack& given) const {
    bool found = false;
    for (size_t place = 0; plan_.writes && place < given.size(); ++place) {
      if (plan_.is_written[place]) {
        each_operand(given[place], [&](const at::Tensor& one) { found = found || one.is_alias_of(tensor); });
      }
    }
    return found;
  }

  // Piece by piece through the same few buffers: what is widened stays in the cache.
  at::Tensor pieced() const {
    const at::Tensor* large = nullptr;
    std::vector<Piece> pieces;
    Stack call = inputs;
    for (size_t place = 0; place < inputs.size(); ++place) {
      if (const at::Tensor* tensor = tensor_of(inputs[place])) {
        large = large == nullptr && tensor->dim() > 0 ? tensor : large;
        pieces.emplace_back(*tensor);
      } else if (plan_.is_dtype[place] && inputs[place].isInt()) {
        call[place] = static_cast<int64_t>(wider(static_cast<c10::ScalarType>(inputs[place].toInt())));
      }
    }
    at::Tensor result;
    const int64_t count = large->numel();
    for (int64_t start = 0; start < count; start += piece_length) {
      const int64_t end = std::min(start + piece_length, count);
      for (Piece& piece : pieces) {
        piece.move_to(start, end);
      }
      Stack stack = call;
      for (c10::IValue& value : stack) {
        value = mapped(value, [&](const at::Tensor& tensor) {
          return std::find_if(pieces.begin(), pieces.end(), [&](const Piece& one) { return one.is_of(tensor); })->now;
        });
      }
      op_.callBoxed(&stack);
      const at::Tensor& part = stack.back().toTensor();
      TORCH_CHECK(part.numel() == end - start && part.is_contiguous(), "not pointwise");
      if (!result.defined()) {
        result = at::empty({count}, part.options());
      }
      std::memcpy(static_cast<char*>(result.mutable_data_ptr()) + start * result.element_size(), part.const_data_ptr(),
                  (end - start) * result.element_size());
    }
    return result.view(large->sizes());
  }
};

}  // namespace nbkit
