// The hot path of DiffMode (nbkit/capture/diff/mode.py) in C++: it compares ops on plain tensors of the CPU with their
// float64 reference, and writes a row where the comparison settles all. Every other op and every doubt is Python's.
#pragma once

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/PyInterpreter.h>
#include <torch/csrc/utils/torch_dispatch_mode.h>

#include <map>
#include <memory>
#include <unordered_map>

#include "clock.h"
#include "comparable.h"
#include "lazy_bits.h"
#include "metrics.h"
#include "python_call.h"
#include "reference.h"
#include "second_look.h"
#include "tensors.h"

namespace nbkit {

// A row of diffs: a compared tensor that is right.
struct DiffRow {
  int64_t slot, is_input, position, dtype, shape;
  Columns metrics;
};

using torch::jit::Stack;

class Differ {
 public:
  explicit Differ(py::object mode)
      : mode_(std::move(mode)),
        recording_(mode_.attr("recording")),
        ops_(recording_.attr("ops")),
        threshold_(mode_.attr("scope").attr("threshold").cast<double>()),
        seed_(mode_.attr("seed").cast<Words32::State>()) {}

  // Runs and compares an op; false, with nothing done, if it is one for DiffMode in Python. Needs the GIL.
  bool compare(const c10::OperatorHandle& op, Stack* stack) {
    DiffPlan& plan = plan_of(op);
    if (plan.left_out >= 0) {
      ++counts_[plan.left_out];
      run(op, stack);
      return true;
    }
    const size_t count = op.schema().arguments().size();
    const Stack given(stack->end() - count, stack->end());
    if (!plan.is_ours || draws(plan, given) || c10::impl::TorchDispatchModeTLS::stack_len() > 1 || !are_plain(given) ||
        (plan.writes && overlap(written_of(plan, given)))) {
      return false;
    }
    torch::torch_dispatch_mode::StashTorchDispatchModeGuard mode_off;
    const int64_t slot = PyList_GET_SIZE(ops_.ptr());
    std::unique_ptr<Rerun> rerun;
    Results found;
    {
      py::gil_scoped_release no_gil;
      int64_t start = now_ns();
      rerun = copied(op, plan, given);
      if (rerun != nullptr) {
        spend(start);
        {
          const c10::impl::ForceDispatchKeyGuard lazy_bits(with_lazy_bits());
          op.callBoxed(stack);
        }
        start = now_ns();
        found = settle(slot, plan, *rerun, given, Stack(stack->end() - plan.returns, stack->end()));
        spend(start);
      }
    }
    if (rerun == nullptr) {
      PyErr_Clear();
      return false;  // Python meets the same trouble, and tells of it
    }
    if (!found.is_settled) {
      hand_over(op, *rerun, given, Stack(stack->end() - plan.returns, stack->end()), found);
    }
    return true;
  }

  // Columns of the rows so far, and how many calls were compared or left out.
  py::dict found() const {
    std::vector<int64_t> places;
    std::vector<double> metrics;
    for (const DiffRow& row : rows_) {
      places.insert(places.end(), {row.slot, row.is_input, row.position, row.dtype, row.shape});
      metrics.insert(metrics.end(), row.metrics.begin(), row.metrics.end());
    }
    py::list names;
    for (const Comparable& one : comparables) {
      names.append(one.name);
    }
    py::list shapes;
    for (const auto& shape : shapes_) {
      shapes.append(py::cast(shape));
    }
    py::dict result;
    result["places"] = as_bytes(places);
    result["metrics"] = as_bytes(metrics);
    result["dtypes"] = names;
    result["shapes"] = shapes;
    result["spent"] = as_bytes(spent_);
    result["compared"] = compared_;
    result["left_out"] = py::make_tuple(reasons_, py::cast(counts_));
    return result;
  }

 private:
  // The step's warnings are the bare step's: see nbkit/capture/replay/muted_warnings.py.
  struct Silence : c10::WarningHandler {
    void process(const c10::Warning&) override {}
  };

  // Work that autograd neither records nor waits for, and that does not warn.
  struct Apart {
    Silence silence;
    c10::WarningUtils::WarningHandlerGuard no_warnings{&silence};
    c10::AutoGradMode no_gradients{false};
    at::AutoDispatchBelowADInplaceOrView below;
    c10::impl::ForceDispatchKeyGuard lazy_bits{with_lazy_bits()};
  };

  static void run(const c10::OperatorHandle& op, Stack* stack) {
    torch::torch_dispatch_mode::StashTorchDispatchModeGuard mode_off;
    const c10::impl::ForceDispatchKeyGuard lazy_bits(with_lazy_bits());
    py::gil_scoped_release no_gil;
    op.callBoxed(stack);
  }

  void spend(int64_t start) { spent_.emplace_back(start, now_ns()); }

  DiffPlan& plan_of(const c10::OperatorHandle& op) {
    py::handle function = torch::detail::getTorchApiFunction(op);
    auto found = plans_.find(function.ptr());
    if (found != plans_.end()) {
      return found->second;
    }
    DiffPlan plan;
    plan.function = py::reinterpret_borrow<py::object>(function);
    using Brief = std::tuple<py::object, bool, bool, int, std::vector<std::string>, std::vector<int>>;
    auto [reason, is_ours, is_pointwise, dropout, written, factors] = mode_.attr("in_brief")(function).cast<Brief>();
    if (!reason.is_none()) {
      plan.left_out = static_cast<int>(counts_.size());
      reasons_.append(reason);
      counts_.push_back(0);
    }
    plan.is_ours = is_ours;
    plan.is_pointwise = is_pointwise;
    plan.dropout = dropout;
    plan.writes = !written.empty();
    plan.factors = factors;
    plan.returns = op.schema().returns().size();
    for (const c10::Argument& argument : op.schema().arguments()) {
      plan.is_written.push_back(std::find(written.begin(), written.end(), argument.name()) != written.end());
      plan.is_dtype.push_back(is_of(argument, c10::TypeKind::ScalarTypeType));
    }
    return plans_.emplace(function.ptr(), std::move(plan)).first->second;
  }

  static bool is_ours(const at::Tensor& tensor) {
    return is_plain(tensor) && tensor.device().is_cpu() && comparable(tensor.scalar_type()) != nullptr &&
           !tensor.is_conj() && !tensor.is_neg();
  }

  static bool are_plain(const Stack& values) {
    bool plain = true;
    for (const c10::IValue& value : values) {
      plain = plain && !(value.isDevice() && !value.toDevice().is_cpu()) && !value.isGenerator();
      each_operand(value, [&](const at::Tensor& tensor) { plain = plain && is_ours(tensor); });
    }
    return plain;
  }

  // Whether a call draws numbers: as draws() of nbkit/capture/diff/random_ops.py.
  static bool draws(const DiffPlan& plan, const Stack& given) {
    return plan.dropout >= 0 && !(given[plan.dropout].isDouble() && given[plan.dropout].toDouble() == 0);
  }

  static std::vector<at::Tensor> written_of(const DiffPlan& plan, const Stack& given) {
    std::vector<at::Tensor> written;
    for (size_t place = 0; plan.writes && place < given.size(); ++place) {
      if (plan.is_written[place]) {
        each_operand(given[place], [&](const at::Tensor& tensor) { written.push_back(tensor); });
      }
    }
    return written;
  }

  // What the reference has made of a call, as far as it was asked; of no use any more once the call is settled.
  struct Results {
    bool is_settled = false;
    Stack expected;
    std::vector<at::Tensor> written;
  };

  // The call with copies of its inputs; null if that is not possible.
  std::unique_ptr<Rerun> copied(const c10::OperatorHandle& op, const DiffPlan& plan, const Stack& given) {
    try {
      Apart apart;
      return std::make_unique<Rerun>(op, plan, given, buffers_);
    } catch (const std::exception&) {
      return nullptr;
    }
  }

  // Settled are calls whose results are right beyond doubt, with rows for them, and those without any.
  Results settle(int64_t slot, DiffPlan& plan, Rerun& rerun, const Stack& given, const Stack& out) {
    const size_t before = rows_.size();
    Results found;
    try {
      const std::vector<at::Tensor> actual = results_of(out, written_of(plan, given));
      Apart apart;
      if (actual.empty()) {
        found.is_settled = true;
      } else if (is_right_in_pieces(slot, plan, rerun, actual)) {
        found.is_settled = true;
        ++compared_;
      } else {
        found.expected = rerun.run(found.written);
        SecondLook look(rerun, seed_);
        found.is_settled = are_right(slot, plan, actual, results_of(found.expected, found.written), given, out, look);
        compared_ += found.is_settled;
      }
    } catch (const std::exception&) {
      found = {};
      plan.is_ours = false;
    }
    if (!found.is_settled) {
      rows_.resize(before);
    }
    return found;
  }

  // Whether the one result of a pointwise op is right beyond doubt; its row is written then. The pieces of its reference
  // are compared as they come, and none is kept: the level of the result stands for that of the reference, which is
  // known at the end and must be near it. Runs without the GIL.
  bool is_right_in_pieces(int64_t slot, const DiffPlan& plan, const Rerun& rerun, const std::vector<at::Tensor>& results) {
    const at::Tensor& actual = results[0];
    const Comparable* known = comparable(actual.scalar_type());
    if (!rerun.in_pieces || plan.dropout >= 0 || results.size() > 1 || known == nullptr ||
        known->precision.digits == 0 || !actual.is_contiguous() || !actual.device().is_cpu() ||
        actual.sizes() != rerun.sizes()) {
      return false;
    }
    const auto* values = static_cast<const char*>(actual.const_data_ptr());
    const auto numel = static_cast<double>(actual.numel());
    const double about = std::sqrt(square_sum(values, known->kind, actual.numel()) / numel);
    const double floor = Measuring::floor(known->precision), slack = 4 * known->precision.eps();
    const double low = about * (1 - slack) + floor, high = about * (1 + slack) + floor;
    if (!std::isfinite(high)) {
      return false;
    }
    Measuring measuring(known->kind, known->precision, low, high);
    const bool is_whole = rerun.each_piece([&](int64_t start, const at::Tensor& part) {
      return part.scalar_type() == c10::kDouble &&
             measuring.add(values + start * actual.element_size(), part.const_data_ptr<double>(), part.numel());
    });
    const double level = is_whole ? measuring.level() : 0;
    const auto found = low <= level && level <= high ? measuring.found(level) : std::nullopt;
    if (!found.has_value() || found->noise > threshold_) {
      return false;
    }
    rows_.push_back({slot, false, 0, known - comparables, shape_number(actual.sizes()), bits_of<Columns>(*found)});
    return true;
  }

  // Whether each tensor is right beyond doubt; their rows are written then. Runs without the GIL.
  bool are_right(int64_t slot, const DiffPlan& plan, const std::vector<at::Tensor>& actual,
                 const std::vector<at::Tensor>& expected, const Stack& given, const Stack& out, SecondLook& look) {
    if (actual.size() != expected.size()) {
      return false;
    }
    size_t returned = 0;
    for (const c10::IValue& value : out) {
      each_operand(value, [&](const at::Tensor&) { ++returned; });
    }
    for (size_t place = 0; place < actual.size(); ++place) {
      const auto numel = static_cast<double>(actual[place].numel());
      const double factor = plan.is_pointwise ? 1.0 : growth(input_numels(given, place, actual.size()), numel);
      DiffRow row{slot, place >= returned, static_cast<int64_t>(place), 0, 0, {}};
      // A fast exp() adds to the rounding of half-precision attention: see nbkit/capture/diff/fast_exp.py.
      const bool is_known = plan.dropout < 0 || actual[0].element_size() > 2;
      if (!is_right(actual[place], expected[place], factor, row, is_known ? &look : nullptr) ||
          (plan.dropout >= 0 && has_nan(row))) {  // see nbkit/capture/replay/undefined.py
        return false;
      }
      if (place >= returned) {
        row.position = position_of(actual[place], given);
      }
      rows_.push_back(row);
    }
    return true;
  }

  // As nbkit/capture/diff/made_of.py.
  static std::vector<double> input_numels(const Stack& given, size_t place, size_t count) {
    std::vector<double> numels;
    std::vector<std::vector<double>> lists;
    for (const c10::IValue& value : given) {
      std::vector<double> found;
      each_operand(value, [&](const at::Tensor& tensor) { found.push_back(static_cast<double>(tensor.numel())); });
      if (!value.isList()) {
        numels.insert(numels.end(), found.begin(), found.end());
      } else if (!found.empty()) {
        lists.push_back(std::move(found));
      }
    }
    const size_t each = lists.empty() ? 0 : lists[0].size();
    const bool has_own = each > 0 && count % each == 0 &&
                         std::all_of(lists.begin(), lists.end(), [&](const auto& one) { return one.size() == each; });
    for (const auto& list : lists) {
      const auto first = list.begin() + (has_own ? static_cast<int64_t>(place % each) : 0);
      numels.insert(numels.end(), first, has_own ? first + 1 : list.end());
    }
    return numels;
  }

  static int64_t position_of(const at::Tensor& wanted, const Stack& given) {
    int64_t number = 0, found = -1;
    for (const c10::IValue& value : given) {
      each_operand(value, [&](const at::Tensor& tensor) {
        found = found < 0 && tensor.is_same(wanted) ? number : found;
        ++number;
      });
    }
    return found;
  }

  bool is_right(const at::Tensor& actual, const at::Tensor& expected, double factor, DiffRow& row, SecondLook* look) {
    const Comparable* known = comparable(actual.scalar_type());
    if (known == nullptr || actual.layout() != c10::kStrided || expected.layout() != c10::kStrided ||
        !actual.device().is_cpu() || !expected.device().is_cpu() || actual.sizes() != expected.sizes() ||
        actual.numel() == 0 || actual.is_conj() || actual.is_neg() || expected.is_conj() || expected.is_neg()) {
      return false;
    }
    std::optional<Measured> found;
    const at::Tensor left = actual.contiguous();
    if (known->precision.digits > 0) {
      if (!c10::isFloatingType(expected.scalar_type())) {
        return false;
      }
      const at::Tensor right = expected.to(c10::kDouble).contiguous();
      found = measure(left.const_data_ptr(), known->kind, right.const_data_ptr<double>(), left.numel(), known->precision);
      if (!found.has_value()) {
        return false;
      }
      found->noise /= known->precision.digits >= 23 ? factor : 1.0;
      if (found->noise > threshold_) {
        const bool is_finite = found->actual_nan + found->expected_nan + found->actual_inf + found->expected_inf == 0;
        if (look == nullptr || !is_finite || expected.scalar_type() != c10::kDouble) {
          return false;
        }
        const auto noise = look->noise(row.position, left, known->kind, right, known->precision, factor, threshold_);
        if (!noise.has_value() || *noise > threshold_) {
          return false;
        }
        found->noise = *noise;
      }
    } else if (!is_equal(left, expected.contiguous(), found.emplace())) {
      return false;
    }
    row.dtype = known - comparables;
    row.shape = shape_number(actual.sizes());
    row.metrics = bits_of<Columns>(*found);
    return true;
  }

  static bool has_nan(const DiffRow& row) {
    const auto found = bits_of<Measured>(row.metrics);
    return found.actual_nan + found.expected_nan > 0;
  }

  static bool is_equal(const at::Tensor& actual, const at::Tensor& expected, Measured& found) {
    if (actual.scalar_type() != expected.scalar_type()) {
      return false;
    }
    const void *left = actual.const_data_ptr(), *right = expected.const_data_ptr();
    switch (actual.scalar_type()) {
      case c10::kLong:
        return measure_equal<int64_t>(left, right, actual.numel(), found);
      case c10::kInt:
        return measure_equal<int32_t>(left, right, actual.numel(), found);
      case c10::kShort:
        return measure_equal<int16_t>(left, right, actual.numel(), found);
      case c10::kChar:
        return measure_equal<int8_t>(left, right, actual.numel(), found);
      default:
        return measure_equal<uint8_t>(left, right, actual.numel(), found);
    }
  }

  int64_t shape_number(c10::IntArrayRef sizes) {
    const auto [found, is_new] = shape_numbers_.try_emplace(sizes.vec(), static_cast<int64_t>(shapes_.size()));
    if (is_new) {
      shapes_.push_back(sizes.vec());
    }
    return found->second;
  }

  // What is not settled here: with all that is known of the call.
  void hand_over(const c10::OperatorHandle& op, Rerun& rerun, const Stack& given, const Stack& out,
                 const Results& found) {
    {
      Apart apart;
      rerun.keep();
    }
    py::object results = py::none();
    if (!found.expected.empty() || !found.written.empty()) {
      results = py::make_tuple(returned(found.expected, found.expected.size()), py::cast(found.written));
    }
    const PythonCall call(op.schema(), given), copies(op.schema(), rerun.inputs);
    try {
      mode_.attr("look_again")(torch::detail::getTorchApiFunction(op), py::make_tuple(call.args, call.kwargs),
                               returned(out, out.size()), py::make_tuple(copies.args, copies.kwargs), results,
                               rerun.in_pieces);
    } catch (py::error_already_set& error) {  // an interrupt: as the dispatcher passes errors of Python's on
      error.restore();
      python_error again;
      again.persist();
      throw again;
    }
  }

  py::object mode_, recording_, ops_;
  std::vector<Span> spent_;
  double threshold_;
  Words32::State seed_;
  Buffers buffers_;
  std::unordered_map<PyObject*, DiffPlan> plans_;
  py::list reasons_;
  std::vector<int64_t> counts_;
  std::vector<DiffRow> rows_;
  std::map<std::vector<int64_t>, int64_t> shape_numbers_;
  std::vector<std::vector<int64_t>> shapes_;
  int64_t compared_ = 0;
};

// Metrics of one pair for the judge, in the order of Metrics of nbkit/numerics/metrics.py; None where they are Python's work.
inline py::object measured_tensors(const at::Tensor& actual, const at::Tensor& expected) {
  const Comparable* known = comparable(actual.scalar_type());
  if (known == nullptr || known->precision.digits == 0 || expected.scalar_type() != c10::kDouble ||
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
