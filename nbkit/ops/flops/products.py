"""Counts the multiply-adds of matrix products and attention, as 2 FLOPs each."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

from nbkit.ops.families import ATTENTION_KERNELS, gradients_of

Formula = Callable[..., int]
Shape = Sequence[int]


def under(formula: Formula, names: str | Iterable[str]) -> Mapping[str, Formula]:
    """Returns a formula under each of the names of ATen ops, in one text or not."""
    return {f"aten.{name}": formula for name in (names.split() if isinstance(names, str) else names)}


def _product(left: Shape, right: Shape, *_: Any) -> int:
    """Counts (..., m, k) by (..., k, n)."""
    return 2 * prod(left) * right[-1]


def _biased_product(_: Shape, left: Shape, right: Shape, *__: Any) -> int:
    return _product(left, right)


def _vector_product(matrix: Shape, *_: Any) -> int:
    """Counts a matrix or a vector by a vector."""
    return 2 * prod(matrix)


def _biased_vector_product(_: Shape, matrix: Shape, *__: Any) -> int:
    return 2 * prod(matrix)


def _grouped_product(left: Shape, right: Shape, *_: Any) -> int:
    """Counts rows by the matrix of their group, whatever is divided into groups: rows, columns or what is summed."""
    return 2 * (prod(left) if len(left) == len(right) == 3 else left[-2] * left[-1]) * right[-1]


def _products_of_lists(lefts: Sequence[Shape], rights: Sequence[Shape]) -> int:
    return sum(_product(left, right) for left, right in zip(lefts, rights, strict=True))


def _linear(x: Shape, weight: Shape, *_: Any) -> int:
    """Counts x by a weight of (out, in)."""
    return 2 * prod(x) * weight[0]


def _linear_backward(x: Shape, gradient: Shape, weight: Shape, wanted: Sequence[bool], *_: Any) -> int:
    return sum(wanted[:2]) * _linear(x, weight)


def _packed_linear(x: Shape, weight: Shape, *_: Any) -> int:
    """Counts x by a weight of four bits whose first size is an eighth of the columns."""
    return 2 * prod(x) * weight[0] * 8


def _trilinear(first: Shape, second: Shape, third: Shape, *expanded: Any) -> int:
    """Counts a multiply-add for each element of the three factors' broadcast product."""
    shapes = []
    for shape, places in zip((first, second, third), expanded, strict=False):
        sizes = list(shape)
        for place in places:
            sizes.insert(place, 1)
        shapes.append(sizes)
    return 2 * int(prod(max(sizes) for sizes in zip(*shapes, strict=True)))


def _euclidean_distance(rows: Shape, others: Shape) -> int:
    """Counts one matrix product of the rows, to each of which torch appends two columns."""
    return 2 * prod(rows[:-1]) * (rows[-1] + 2) * others[-2]


def _affine_grid(_: Shape, sizes: Sequence[int], *__: Any) -> int:
    """Counts each position, with a 1 appended, by the matrix of the map."""
    dims = len(sizes) - 2
    return 2 * sizes[0] * prod(sizes[2:]) * dims * (dims + 1)


def attention(query: Shape, key: Shape, value: Shape, *_: Any) -> int:
    """Counts query (B, H, S, E), key (B, G, L, E), value (B, G, L, V): scores, and their product with the values.

    Every position counts, whatever the mask, as in torch.utils.flop_counter.
    """
    return 2 * prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _attention_backward(_: Shape, query: Shape, key: Shape, value: Shape, *__: Any) -> int:
    """Counts the scores again, and for each of the two products the gradients of both factors."""
    return 2 * prod(query[:-1]) * key[-2] * (3 * query[-1] + 2 * value[-1])


def _flash(query: Shape, key: Shape, value: Shape, query_ends: Shape, *_: Any) -> int:
    """Counts tensors of (B, S, H, E); the lengths of packed sequences are values, which no formula gets."""
    return attention(*(_heads_second(shape, query_ends) for shape in (query, key, value)))


def _flash_backward(gradient: Shape, query: Shape, key: Shape, value: Shape, *others: Any) -> int:
    return _attention_backward(gradient, *(_heads_second(shape, others[2]) for shape in (query, key, value)))


def _efficient(query: Shape, key: Shape, value: Shape, _: Any, query_ends: Shape, *__: Any) -> int:
    return attention(*(_heads_second(shape, query_ends) for shape in (query, key, value)))


def _efficient_backward(gradient: Shape, query: Shape, key: Shape, value: Shape, *others: Any) -> int:
    return _attention_backward(gradient, *(_heads_second(shape, others[2]) for shape in (query, key, value)))


def _heads_second(shape: Shape, sequence_ends: Shape) -> Shape:
    if sequence_ends:
        raise ValueError("The lengths of packed sequences are values.")
    return [shape[0], shape[2], shape[1], shape[3]]


def encoder_attention(query: Shape, key: Shape, value: Shape, width: int, _: Any, packed: Shape, *__: Any) -> int:
    """Counts the projections of query, key and value, attention, and the projection of its result (B, S, width)."""
    rows, keys = query[:-1], key[-2]
    projections = 2 * prod(query) * width + 2 * (prod(key) + prod(value)) * width
    return projections + 4 * prod(rows) * keys * width + 2 * prod(rows) * width * width


def encoder_layer(x: Shape, width: int, heads: int, packed: Shape, *others: Any) -> int:
    """Counts self-attention and the two products of the feed-forward part."""
    first, second = others[10], others[12]
    products: int = 2 * prod(x[:-1]) * (prod(first) + prod(second))
    return encoder_attention(x, x, x, width, heads, packed) + products


PRODUCTS: dict[str, Formula] = {
    **under(_product, "mm bmm _scaled_mm _int_mm"),
    **under(_biased_product, "addmm baddbmm addbmm _addmm_activation"),
    **under(_vector_product, "mv dot vdot"),
    **under(_biased_vector_product, "addmv"),
    **under(_grouped_product, "_grouped_mm _scaled_grouped_mm"),
    **under(_products_of_lists, "_foreach_mm"),
    **under(_linear, "mkldnn_linear _weight_int8pack_mm _weight_int4pack_mm_for_cpu"),
    **under(_packed_linear, "_weight_int4pack_mm"),
    **under(_linear_backward, "mkldnn_linear_backward linear_backward"),
    **under(_trilinear, "_trilinear"),
    **under(_euclidean_distance, "_euclidean_dist"),
    **under(_affine_grid, "affine_grid_generator"),
    **under(attention, ATTENTION_KERNELS | {"_scaled_dot_product_attention_math_for_mps"}),
    **under(_attention_backward, gradients_of("ATTENTION_KERNELS")),
    **under(_flash, "_flash_attention_forward"),
    **under(_flash_backward, "_flash_attention_backward"),
    **under(_efficient, "_efficient_attention_forward"),
    **under(_efficient_backward, "_efficient_attention_backward"),
    **under(encoder_attention, "_native_multi_head_attention"),
    **under(encoder_layer, "_transformer_encoder_layer_fwd"),
}
