// A second look at what differs by more than its own rounding: how much the smallest change of the inputs would do.
// What nbkit/capture/diff/conditioning.py does with its first draw.
#pragma once

#include <optional>

#include "metrics.h"
#include "product_parts.h"
#include "reference.h"

namespace nbkit {

// numpy's PCG64, from a state of it: what its generator's bytes() are made of, four at a time.
class Words32 {
 public:
  using State = std::array<uint64_t, 4>;  // state and increment, the lower half of each first

  explicit Words32(const State& given)
      : state_(static_cast<Wide>(given[1]) << 64 | given[0]), increment_(static_cast<Wide>(given[3]) << 64 | given[2]) {}

  uint32_t next() {
    if (has_half_) {
      has_half_ = false;
      return static_cast<uint32_t>(word_ >> 32);
    }
    state_ = state_ * multiplier + increment_;
    const auto mixed = static_cast<uint64_t>(state_ >> 64) ^ static_cast<uint64_t>(state_);
    const auto turn = static_cast<int>(state_ >> 122);
    word_ = mixed >> turn | mixed << (-turn & 63);
    has_half_ = true;
    return static_cast<uint32_t>(word_);
  }

 private:
  using Wide = unsigned __int128;
  static constexpr Wide multiplier = static_cast<Wide>(0x2360ed051fc65da4) << 64 | 0x4385df649fccf645;
  Wide state_, increment_;
  uint64_t word_ = 0;
  bool has_half_ = false;
};

// A sign for each of `count` elements, rounded up to whole words: the highest bit of a byte comes first.
inline std::vector<uint8_t> sign_bytes(int64_t count, Words32& words) {
  std::vector<uint32_t> bits((count + 31) / 32);
  for (uint32_t& word : bits) {
    word = words.next();
  }
  std::vector<uint8_t> bytes(bits.size() * sizeof(uint32_t));
  std::memcpy(bytes.data(), bits.data(), bytes.size());
  return bytes;
}

// values (1 + eps sign), eps a power of two; Inf stays Inf.
NBKIT_WIDE inline void change(const double* values, const uint8_t* signs, int64_t count, double eps, double* to) {
  const Longs first{56, 57, 58, 59}, sign_bit = Longs{} + std::numeric_limits<int64_t>::min();
  const Longs magnitude = Longs{} + std::numeric_limits<int64_t>::max();
  const Doubles factor = all_of(eps), most = all_of(std::numeric_limits<double>::max());
  int64_t at = 0;
  for (; at + lanes <= count; at += lanes) {
    const Longs byte = Longs{} + static_cast<int64_t>(static_cast<uint8_t>(~signs[at / 8]));
    const Longs turned = (byte << (first + at % 8)) & sign_bit;
    const Doubles one = loaded<Doubles>(values + at), step = one * factor;
    const Longs is_finite = reinterpret_cast<Doubles>(reinterpret_cast<Longs>(one) & magnitude) <= most;
    const Doubles changed = one + reinterpret_cast<Doubles>((reinterpret_cast<Longs>(step) ^ turned) & is_finite);
    std::memcpy(to + at, &changed, sizeof(changed));
  }
  for (; at < count; ++at) {
    const bool is_up = (signs[at / 8] >> (7 - at % 8) & 1) != 0;
    to[at] = std::isinf(values[at]) ? values[at] : values[at] + (is_up ? values[at] * eps : -(values[at] * eps));
  }
}

inline at::Tensor changed(const at::Tensor& value, Words32& words, double eps) {
  if (!c10::isFloatingType(value.scalar_type())) {
    return value;
  }
  const std::vector<uint8_t> signs = sign_bytes(value.numel(), words);
  at::Tensor result = at::empty(value.sizes(), value.options());
  if (value.is_contiguous()) {
    change(value.const_data_ptr<double>(), signs.data(), value.numel(), eps, result.mutable_data_ptr<double>());
    return result;
  }
  // A change of 1 by +-1 eps; the strides are those that the step's own reference has.
  const at::Tensor ones = at::ones(value.sizes(), value.options());
  change(ones.const_data_ptr<double>(), signs.data(), ones.numel(), 1.0, result.mutable_data_ptr<double>());
  return at::where(at::isinf(value), value, at::addcmul(value, value, result.sub_(1.0), eps));
}

// |changed - center| becomes factor |changed - center| + own |center|, where a result that is no number does not count.
NBKIT_WIDE inline void scale_by(const double* center, int64_t count, double factor, double own, double* changed) {
  const Longs magnitude = Longs{} + std::numeric_limits<int64_t>::max();
  const Doubles factors = all_of(factor), owns = all_of(own), most = all_of(std::numeric_limits<double>::max());
  int64_t at = 0;
  for (; at + lanes <= count; at += lanes) {
    const Doubles middle = loaded<Doubles>(center + at), error = loaded<Doubles>(changed + at) - middle;
    const Longs size = reinterpret_cast<Longs>(error) & magnitude;
    const Longs kept = size & (reinterpret_cast<Doubles>(size) <= most);
    const auto level = reinterpret_cast<Doubles>(reinterpret_cast<Longs>(middle) & magnitude);
    const Doubles scale = factors * reinterpret_cast<Doubles>(kept) + owns * level;
    std::memcpy(changed + at, &scale, sizeof(scale));
  }
  for (; at < count; ++at) {
    const double size = std::abs(changed[at] - center[at]);
    changed[at] = factor * (std::isfinite(size) ? size : 0.0) + own * std::abs(center[at]);
  }
}

// The largest |actual - expected| / (scale + level), of a multiple of 16 elements.
NBKIT_WIDE inline double largest_ratio(const double* actual, const double* expected, const double* scale,
                                       int64_t count, double level) {
  const Longs magnitude = Longs{} + std::numeric_limits<int64_t>::max();
  const Doubles levels = all_of(level);
  Doubles largest{};
  for (int64_t at = 0; at < count; at += lanes) {
    const Doubles error = loaded<Doubles>(actual + at) - loaded<Doubles>(expected + at);
    const auto size = reinterpret_cast<Doubles>(reinterpret_cast<Longs>(error) & magnitude);
    const Doubles ratio = size / (loaded<Doubles>(scale + at) + levels);
    largest = ratio > largest ? ratio : largest;
  }
  return std::max({largest[0], largest[1], largest[2], largest[3]});
}

// The noise ratio of a pair of finite numbers, as noise_ratios() of nbkit/numerics/noise_ratio.py; `changed` is what the reference
// makes of changed inputs, and is overwritten. None where the scale is not finite, which is left to Python.
inline std::optional<double> full_noise(const void* actual, Kind kind, const double* expected, double* changed,
                                        int64_t count, const Precision& precision, double factor) {
  const double own = precision.digits >= 23 ? factor : 1.0;
  scale_by(expected, count, factor, own * precision.eps(), changed);
  const double square = square_sum(changed, Kind::float64, count);
  if (!std::isfinite(square)) {
    return std::nullopt;
  }
  const double level = std::sqrt(square / static_cast<double>(count)) + precision.spacing();
  alignas(32) double left[block_length + 16], right[block_length + 16], scale[block_length + 16] = {};
  double largest = 0;
  for (int64_t first = 0; first < count; first += block_length) {
    const int64_t length = std::min(block_length, count - first);
    const int64_t padded = block_of(actual, kind, expected, first, length, left, right);
    std::memcpy(scale, changed + first, length * sizeof(double));
    largest = std::max(largest, largest_ratio(left, right, scale, padded, level));
  }
  return largest;
}

// What the reference makes of a call whose inputs are changed by eps: made once, when it is asked for.
class SecondLook {
 public:
  SecondLook(const Rerun& rerun, const Words32::State& seed) : rerun_(rerun), seed_(seed) {}

  // The noise ratio of a result (its place among them); none for Python to find out.
  std::optional<double> noise(size_t place, const at::Tensor& actual, Kind kind, const at::Tensor& expected,
                              const Precision& precision, double factor, double threshold) {
    const double eps = std::min(precision.eps(), 0x1p-23);
    if (!rerun_.plan().factors.empty()) {
      const auto found = noise_by_part(actual, kind, expected, precision, factor, threshold, eps);
      if (found.has_value() && *found <= threshold) {
        return found;
      }
    }
    if (rerun_.in_pieces || (eps_ != 0 && eps != eps_)) {
      return std::nullopt;
    }
    if (eps_ == 0) {
      eps_ = eps;
      results_ = results(perturbed(rerun_.inputs, eps));
    }
    if (place >= results_.size() || results_[place].scalar_type() != c10::kDouble ||
        results_[place].sizes() != expected.sizes() || results_[place].layout() != c10::kStrided) {
      return std::nullopt;
    }
    const at::Tensor own = results_[place].is_contiguous() ? results_[place] : results_[place].contiguous();
    results_[place] = at::Tensor();
    return full_noise(actual.const_data_ptr(), kind, expected.const_data_ptr<double>(), own.mutable_data_ptr<double>(),
                      actual.numel(), precision, factor);
  }

 private:
  // Of a product, with the conditioning of those elements only that need it; none if that leaves it open.
  std::optional<double> noise_by_part(const at::Tensor& actual, Kind kind, const at::Tensor& expected,
                                      const Precision& precision, double factor, double threshold, double eps) const {
    const double own = (precision.digits >= 23 ? factor : 1.0) * precision.eps();
    const auto* right = expected.const_data_ptr<double>();
    const double level = own * root_mean_square(right, expected.numel()) + precision.spacing();
    const Suspects suspects = suspects_of(actual.const_data_ptr(), kind, right, actual.numel(), own, level, threshold);
    const std::optional<ProductPart> part = part_of(rerun_, expected.sizes(), suspects.elements);
    if (!part.has_value()) {
      return std::nullopt;
    }
    const at::Tensor center = results(part->inputs)[0], other = results(perturbed(part->inputs, eps))[0];
    double largest = suspects.largest;
    for (size_t one = 0; one < part->places.size(); ++one) {
      const int64_t element = suspects.elements[one], place = part->places[one];
      const double change = std::abs(other.const_data_ptr<double>()[place] - center.const_data_ptr<double>()[place]);
      const double scale = factor * (std::isfinite(change) ? change : 0.0) + own * std::abs(right[element]);
      double wide = 0;
      widen_all(static_cast<const char*>(actual.const_data_ptr()) + element * size_of(kind), kind, 1, &wide);
      largest = std::max(largest, std::abs(wide - right[element]) / (scale + level));
    }
    return largest;
  }

  std::vector<at::Tensor> results(Stack inputs) const {
    std::vector<at::Tensor> written;
    const Stack out = rerun_.run_with(std::move(inputs), written);
    return results_of(out, written);
  }

  Stack perturbed(const Stack& given, double eps) const {
    Words32 words(seed_);
    std::vector<std::pair<const c10::TensorImpl*, at::Tensor>> known;
    Stack inputs;
    for (const c10::IValue& input : given) {
      inputs.push_back(mapped(input, [&](const at::Tensor& tensor) {
        for (const auto& [impl, copy] : known) {
          if (impl == tensor.unsafeGetTensorImpl()) {
            return copy;
          }
        }
        known.emplace_back(tensor.unsafeGetTensorImpl(), changed(tensor, words, eps));
        return known.back().second;
      }));
    }
    return inputs;
  }

  const Rerun& rerun_;
  const Words32::State& seed_;
  double eps_ = 0;
  std::vector<at::Tensor> results_;
};

}  // namespace nbkit
