// The rows and columns of a matrix product that hold the elements a second look is about: as
// nbkit/capture/diff/product_parts.py.
#pragma once

#include <optional>
#include <vector>

#include "metrics.h"
#include "reference.h"

namespace nbkit {

constexpr int64_t part_share = 8;  // SHARE of product_parts.py

// Elements of a pair, in order, whose noise ratio without conditioning is above the threshold; the largest of the others.
struct Suspects {
  std::vector<int64_t> elements;
  double largest = 0;
};

// Of a multiple of 4 elements; `first` is the number of the first.
NBKIT_WIDE inline void suspect(const double* actual, const double* expected, int64_t count, int64_t first, double own,
                               double level, double threshold, Suspects& found) {
  const Longs magnitude = Longs{} + std::numeric_limits<int64_t>::max();
  const Doubles owns = all_of(own), levels = all_of(level), most = all_of(threshold);
  Doubles largest{};
  for (int64_t at = 0; at < count; at += lanes) {
    const Doubles e = loaded<Doubles>(expected + at), error = loaded<Doubles>(actual + at) - e;
    const auto size = reinterpret_cast<Doubles>(reinterpret_cast<Longs>(error) & magnitude);
    const auto expected_size = reinterpret_cast<Doubles>(reinterpret_cast<Longs>(e) & magnitude);
    const Doubles ratio = size / (owns * expected_size + levels);
    const Longs is_above = ratio > most;
    if (((is_above[0] | is_above[1]) | (is_above[2] | is_above[3])) == 0) {
      largest = ratio > largest ? ratio : largest;
      continue;
    }
    for (int64_t lane = 0; lane < lanes; ++lane) {
      if (is_above[lane] != 0) {
        found.elements.push_back(first + at + lane);
      } else {
        largest[lane] = std::max(largest[lane], ratio[lane]);
      }
    }
  }
  found.largest = std::max({found.largest, largest[0], largest[1], largest[2], largest[3]});
}

// None where they are too many for a part.
inline Suspects suspects_of(const void* actual, Kind kind, const double* expected, int64_t count, double own,
                            double level, double threshold) {
  alignas(32) double left[block_length + 16], right[block_length + 16];
  Suspects found;
  for (int64_t first = 0; first < count; first += block_length) {
    const int64_t length = std::min(block_length, count - first);
    const int64_t padded = block_of(actual, kind, expected, first, length, left, right);
    suspect(left, right, padded, first, own, level, threshold, found);
    if (static_cast<int64_t>(found.elements.size()) * part_share > count) {
      return {};
    }
  }
  return found;
}

// The chosen indices of one dimension of a product, and where among them each element's is.
struct Chosen {
  std::vector<int64_t> indices, places;

  explicit Chosen(const std::vector<int64_t>& wanted) : indices(wanted) {
    std::sort(indices.begin(), indices.end());
    indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
    for (const int64_t one : wanted) {
      places.push_back(std::lower_bound(indices.begin(), indices.end(), one) - indices.begin());
    }
  }

  at::Tensor of(const at::Tensor& tensor, int64_t dim) const {
    return tensor.index_select(dim, at::tensor(indices, c10::kLong));
  }
};

// A smaller product: every chosen row times every chosen column.
struct ProductPart {
  Stack inputs;
  std::vector<int64_t> places;  // of the elements that were asked for among its results
};

// None if the call is no product, or its part is not much smaller.
inline std::optional<ProductPart> part_of(const Rerun& rerun, c10::IntArrayRef shape,
                                          const std::vector<int64_t>& elements) {
  const std::vector<int>& factors = rerun.plan().factors;
  if (factors.empty() || elements.empty()) {
    return std::nullopt;
  }
  const auto dims = static_cast<int64_t>(shape.size());
  std::vector<std::vector<int64_t>> wanted(dims);
  for (int64_t element : elements) {
    for (int64_t dim = dims - 1; dim >= 0; --dim) {
      wanted[dim].push_back(element % shape[dim]);
      element /= shape[dim];
    }
  }
  std::vector<Chosen> chosen(wanted.begin(), wanted.end());
  int64_t size = part_share, whole = 1;
  ProductPart part{{}, std::vector<int64_t>(elements.size(), 0)};
  for (int64_t dim = 0; dim < dims; ++dim) {
    const auto count = static_cast<int64_t>(chosen[dim].indices.size());
    size *= count;
    whole *= shape[dim];
    for (size_t one = 0; one < elements.size(); ++one) {
      part.places[one] = part.places[one] * count + chosen[dim].places[one];
    }
  }
  if (size > whole) {
    return std::nullopt;
  }
  for (size_t number = 0; number < rerun.inputs.size(); ++number) {
    const bool is_first = static_cast<int>(number) == factors[0], is_second = static_cast<int>(number) == factors[1];
    part.inputs.push_back(mapped(rerun.inputs[number], [&](const at::Tensor& tensor) {
      at::Tensor some = is_first || is_second ? tensor : tensor.expand(shape);
      for (int64_t dim = 0; dim < dims; ++dim) {
        const bool is_summed = (is_first && dim == dims - 1) || (is_second && dim == dims - 2);
        some = is_summed ? some : chosen[dim].of(some, dim);
      }
      return some;
    }));
  }
  return part;
}

}  // namespace nbkit
