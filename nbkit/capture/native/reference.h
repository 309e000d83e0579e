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
#include "copies.h"

namespace nbkit {

using torch::jit::Stack;

// A quarter of PIECE of nbkit/capture/replay/chunked.py: an op costs less to call from here, and its buffers stay in L2.
constexpr int64_t piece_length = 1 << 13;
// What is not longer is done as a whole.
constexpr int64_t whole_length = 1 << 12;

// A piece of a tensor that lies in order in memory, widened for the op that is run on it; a scalar as a whole.
class Piece {
 public:
  Piece(const at::Tensor& tensor, Buffers& buffers)
      : tensor_(tensor), kind_(kind_of(tensor.scalar_type())), buffers_(buffers) {}

  at::Tensor now;

  bool is_of(const at::Tensor& tensor) const { return tensor.is_same(tensor_); }

  void move_to(int64_t start, int64_t end) {
    if (tensor_.dim() == 0) {
      now = now.defined() ? now : widened(tensor_, buffers_);
      return;
    }
    if (!kind_.has_value()) {
      now = widened(tensor_.view(-1).slice(0, start, end), buffers_);
      return;
    }
    if (!now.defined() || now.numel() != end - start) {
      now = buffers_.empty({end - start}, {1}, c10::kDouble, end - start);
    }
    const auto* from = static_cast<const char*>(tensor_.const_data_ptr()) + start * tensor_.element_size();
    widen_all(from, *kind_, end - start, now.mutable_data_ptr<double>());
  }

 private:
  const at::Tensor tensor_;
  const std::optional<Kind> kind_;
  Buffers& buffers_;
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
  std::vector<int> factors;                // of a matrix product: the numbers of those arguments
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
  Rerun(const c10::OperatorHandle& op, const DiffPlan& plan, const Stack& given, Buffers& buffers)
      : op_(op), plan_(plan), buffers_(buffers), in_pieces(plan.is_pointwise && fits_pieces(plan, given)) {
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
          written.push_back(cloned(tensor, buffers_));
          return written.back();
        });
      }
    }
    op_.callBoxed(&stack);
    return stack;
  }

  const DiffPlan& plan() const { return plan_; }

  // Of the result of a call in pieces.
  c10::IntArrayRef sizes() const { return large_of(inputs)->sizes(); }

  // What the reference of a call in pieces returns, as it comes, until `work` returns false: work(start, piece).
  // All pieces go through the same few buffers: what is widened stays in the cache.
  template <typename Work>
  bool each_piece(const Work& work) const {
    std::vector<Piece> pieces;
    const auto piece_of = [&](const at::Tensor& tensor) {
      return std::find_if(pieces.begin(), pieces.end(), [&](const Piece& one) { return one.is_of(tensor); });
    };
    Stack call = inputs;
    for (size_t place = 0; place < inputs.size(); ++place) {
      if (const at::Tensor* tensor = tensor_of(inputs[place])) {
        if (piece_of(*tensor) == pieces.end()) {
          pieces.emplace_back(*tensor, buffers_);
        }
      } else if (plan_.is_dtype[place] && inputs[place].isInt()) {
        call[place] = static_cast<int64_t>(wider(static_cast<c10::ScalarType>(inputs[place].toInt())));
      }
    }
    const int64_t count = large_of(inputs)->numel();
    for (int64_t start = 0; start < count; start += piece_length) {
      const int64_t end = std::min(start + piece_length, count);
      for (Piece& piece : pieces) {
        piece.move_to(start, end);
      }
      Stack stack = call;
      for (c10::IValue& value : stack) {
        value = mapped(value, [&](const at::Tensor& tensor) { return piece_of(tensor)->now; });
      }
      op_.callBoxed(&stack);
      const at::Tensor& part = stack.back().toTensor();
      TORCH_CHECK(part.numel() == end - start && part.is_contiguous(), "not pointwise");
      if (!work(start, part)) {
        return false;
      }
    }
    return true;
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
  Buffers& buffers_;
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
    return fits && large != nullptr && large->numel() > whole_length;
  }

  // One tensor becomes one tensor, wherever it stands.
  at::Tensor copied(const at::Tensor& tensor, const Stack& given) {
    for (const auto& [known, copy] : copies_) {
      if (known == tensor.unsafeGetTensorImpl()) {
        return copy;
      }
    }
    at::Tensor copy = !in_pieces                    ? widened(tensor, buffers_)
                      : is_changed(tensor, given) ? cloned(tensor, buffers_)
                                                  : tensor;
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

  at::Tensor pieced() const {
    at::Tensor result;
    const at::Tensor& large = *large_of(inputs);
    each_piece([&](int64_t start, const at::Tensor& part) {
      if (!result.defined()) {
        result = at::empty({large.numel()}, part.options());
      }
      std::memcpy(static_cast<char*>(result.mutable_data_ptr()) + start * result.element_size(), part.const_data_ptr(),
                  part.numel() * result.element_size());
      return true;
    });
    return result.view(large.sizes());
  }

  static const at::Tensor* large_of(const Stack& given) {
    for (const c10::IValue& value : given) {
      const at::Tensor* tensor = tensor_of(value);
      if (tensor != nullptr && tensor->dim() > 0) {
        return tensor;
      }
    }
    return nullptr;
  }
};

}  // namespace nbkit
