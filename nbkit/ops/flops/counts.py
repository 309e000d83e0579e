"""Counts the elements that an op computes: what a rule for elementwise arithmetic multiplies."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil, log2, prod
from typing import Any

# FLOPs for each element: of a softmax, to subtract, exp, sum and divide; of a norm with a weight, as it is usual.
SOFTMAX, NORM = 4, 5
Count = Callable[[Sequence[Any], Mapping[str, Any], Any], int]


def elements(held: Any) -> int:
    """Returns the elements of a tensor, or of the tensors in a list; 0 for what is none."""
    if isinstance(held, list | tuple):
        return sum(elements(item) for item in held)
    return int(held.numel()) if hasattr(held, "numel") else 0


def first_of(out: Any) -> Any:
    """Returns the result of an op, of several the first."""
    return out[0] if isinstance(out, list | tuple) and out else out


def argument(args: Sequence[Any], kwargs: Mapping[str, Any], place: int, name: str, default: Any = None) -> Any:
    """Returns an argument by its place or its name."""
    return args[place] if place < len(args) else kwargs.get(name, default)


def nothing(_: Sequence[Any], __: Mapping[str, Any], ___: Any) -> int:
    """Counts nothing."""
    return 0


def per_result(factor: int) -> Count:
    """Returns a rule of so many FLOPs for each element of the (first) result."""

    def count(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
        return factor * (int(out.numel()) if hasattr(out, "numel") else elements(first_of(out)))

    return count


def per_argument(factor: int, place: int = 0) -> Count:
    """Returns a rule of so many FLOPs for each element of an argument: a tensor, or the tensors of a list."""

    def count(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
        return factor * elements(args[place])

    return count


def per_loss(factor: int, reduction: int) -> Count:
    """Returns the rule of a loss: so many FLOPs for each element, and one where it sums or averages them."""

    def count(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
        return (factor + bool(argument(args, kwargs, reduction, "reduction", 1))) * elements(args[0])

    return count


def affine(factor: int, weight: int) -> Count:
    """Returns the rule of a norm: one FLOP fewer for each element where it has no weight."""

    def count(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
        has_weight = argument(args, kwargs, weight, "weight") is not None
        return (factor if has_weight else factor - 1) * elements(args[0])

    return count


def batch_norm(training: int) -> Count:
    """Returns the rule of a batch norm: 5 FLOPs for each element where it takes the batch's statistics, else 2."""

    def count(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
        return (5 if argument(args, kwargs, training, "training") else 2) * elements(args[0])

    return count


def bias(place: int) -> Count:
    """Returns the rule of a product that adds an eventual bias to its result."""

    def count(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
        return elements(out) if argument(args, kwargs, place, "bias") is not None else 0

    return count


def bias_gradient(place: int) -> Count:
    """Returns the rule of a product's gradients: the sum over the result's gradient, where that of a bias is wanted."""

    def count(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
        wanted = argument(args, kwargs, len(args) - 1, "output_mask")
        return elements(args[place]) if wanted[-1] else 0

    return count


def pooled(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
    """Counts each element of each window once."""
    return elements(first_of(out)) * int(prod(args[1]))


def averaged_back(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
    """Counts each gradient of an average once for each element of its window."""
    return elements(args[0]) * int(prod(args[2]))


def sorted_along(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
    """Counts log2 n comparisons for each of the n elements along a dimension."""
    dim = kwargs.get("dim", args[1] if len(args) > 1 else -1)
    return elements(args[0]) * _steps(args[0].shape[dim] if args[0].dim() else 1)


def sorted_whole(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
    """Counts log2 n comparisons for each of the n elements."""
    return elements(args[0]) * _steps(elements(args[0]))


def looked_up(place: int) -> Count:
    """Returns the rule of a search: log2 n comparisons with the n sorted values along the last dimension."""

    def count(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
        return elements(out) * _steps(args[place].shape[-1] if args[place].dim() else 1)

    return count


def _steps(size: int) -> int:
    return ceil(log2(size)) if size > 1 else 0


def added(place: int, flag: int) -> Count:
    """Returns the rule of a write at indices: one addition for each value, where a flag says that it adds."""

    def count(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
        return elements(args[place]) if argument(args, kwargs, flag, "accumulate") else 0

    return count


def reduced_at(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
    """Counts a scatter: one for each index where it reduces, else none."""
    return elements(args[2]) if kwargs.get("reduce") or len(args) > 4 else 0


def interpolated(taps: int) -> Count:
    """Returns the rule of an interpolation: a product for each tap, and their sum, for each element of the result."""
    return per_result(2 * taps - 1)


def sampled(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
    """Counts a sampled grid: bilinear (trilinear in 3-D) interpolation, 0 for the nearest point, 31 for bicubic."""
    mode = argument(args, kwargs, 2, "interpolation_mode", 0)
    taps = 1 << (args[0].dim() - 2)
    return elements(out) * (2 * taps - 1, 0, 31)[mode]


def sampled_back(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
    """Counts a product and a sum for each tap and each wanted gradient: that of the input, and that of the grid."""
    mode, wanted = argument(args, kwargs, 3, "interpolation_mode", 0), argument(args, kwargs, 6, "output_mask", (1, 1))
    taps = (1 << (args[0].dim() - 2), 1, 16)[mode]
    return 2 * taps * elements(args[0]) * sum(map(bool, wanted))


def bags(weights: int) -> Count:
    """Returns the rule of summed embeddings: an addition for each index and column, and a product with a weight."""

    def count(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
        has_weights = argument(args, kwargs, weights, "per_sample_weights") is not None
        return (1 + has_weights) * elements(args[1]) * int(args[0].shape[-1])

    return count


def distances(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
    """Counts a difference, its power and their sum for each pair and dimension."""
    return 3 * elements(out) * int(args[0].shape[-1])


def distances_back(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
    """Counts a difference, its power, a product and their sum for each pair and dimension."""
    return 4 * elements(args[0]) * int(args[1].shape[-1])


def distances_by_product(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
    """Counts what stands around one matrix product: the squares of both sides, and each distance's bound and root."""
    return 2 * (elements(args[0]) + elements(args[1])) + 2 * elements(out)
