"""Lists the ops that are measured on rows or planes: norms, softmax, sums, gathers, scatters, pooling, copies."""

from collections.abc import Callable, Iterator
from functools import partial

import torch

from nbkit.capture.calibrate.probes.probe import Call, Place, Probe

ATEN = torch.ops.aten
# (rows, elements of a row)
ROWS = ((4, 16), (64, 64), (128, 512), (1_024, 512), (512, 4_096), (8_192, 512))
LARGEST = (32_768, 512)  # which accelerators take as long for as memory does
TABLE = 4_096  # rows of an embedding
Make = Callable[[int, int, Place], Call]


def row_probes(place: Place) -> Iterator[Probe]:
    """Yields the probes of a dtype, small ones first."""
    for rows, width in (*ROWS, *(() if place.device.type == "cpu" else (LARGEST,))):
        for op, make in MAKERS:
            yield Probe(op, place, partial(make, rows, width))
        yield Probe(ATEN.div.Scalar, place, partial(_expanded, rows, width), is_overload=True)


def _softmax(op: Callable[..., object], rows: int, width: int, place: Place) -> Call:
    x = place.filled(rows, width)
    return partial(op, x, -1, False)


def _safe_softmax(rows: int, width: int, place: Place) -> Call:
    x = place.filled(rows, width)
    return partial(ATEN._safe_softmax.default, x, -1)


def _softmax_backward(op: Callable[..., object], rows: int, width: int, place: Place) -> Call:
    gradient, out = place.filled(rows, width), place.filled(rows, width)
    return partial(op, gradient, out, -1, place.dtype)


def _layer_norm(rows: int, width: int, place: Place) -> Call:
    x, weight, bias = place.filled(rows, width), place.filled(width), place.filled(width)
    return partial(ATEN.native_layer_norm.default, x, [width], weight, bias, 1e-5)


def _layer_norm_backward(rows: int, width: int, place: Place) -> Call:
    x, weight, bias = place.filled(rows, width), place.filled(width), place.filled(width)
    mean, scale = place.filled(rows, 1), place.filled(rows, 1)
    backward = ATEN.native_layer_norm_backward.default
    return partial(backward, x, x, [width], mean, scale, weight, bias, [True, True, True])


def _image(rows: int, width: int, place: Place) -> torch.Tensor:
    """Returns images (B, C, H, W) of so many elements in all, as rows of that width have."""
    side = max(4, int((rows * width / 256) ** 0.5) // 4 * 4) if rows * width > 4_096 else 4
    # Random numbers, since pooling compares them.
    shape = (max(1, rows * width // (side * side * 32)), 32, side, side)
    return torch.rand(shape, device=place.device, dtype=place.dtype)


def _batch_norm(rows: int, width: int, place: Place) -> Call:
    x = _image(rows, width, place)
    vectors = [place.filled(32) for _ in range(4)]
    return partial(ATEN.native_batch_norm.default, x, *vectors, True, 0.1, 1e-5)


def _batch_norm_backward(rows: int, width: int, place: Place) -> Call:
    x = _image(rows, width, place)
    vectors = [place.filled(32) for _ in range(5)]
    return partial(ATEN.native_batch_norm_backward.default, x, x, *vectors, True, 1e-5, [True, True, True])


def _pool(rows: int, width: int, place: Place) -> Call:
    x = _image(rows, width, place)
    return partial(ATEN.max_pool2d_with_indices.default, x, [3, 3], [2, 2], [1, 1])


def _pool_backward(rows: int, width: int, place: Place) -> Call:
    x = _image(rows, width, place)
    out, indices = ATEN.max_pool2d_with_indices.default(x, [3, 3], [2, 2], [1, 1])
    options = ([3, 3], [2, 2], [1, 1], [1, 1], False)
    return partial(ATEN.max_pool2d_with_indices_backward.default, out, x, *options, indices)


def _reduced(op: Callable[..., object], dim: int, rows: int, width: int, place: Place) -> Call:
    x = place.filled(rows, width)
    return partial(op, x, [dim], True)


def _embedding(rows: int, width: int, place: Place) -> Call:
    table, indices = place.filled(TABLE, width), place.indices(TABLE, rows)
    return partial(ATEN.embedding.default, table, indices)


def _embedding_backward(rows: int, width: int, place: Place) -> Call:
    gradient, indices = place.filled(rows, width), place.indices(TABLE, rows)
    return partial(ATEN.embedding_dense_backward.default, gradient, indices, TABLE, -1, False)


def _index(rows: int, width: int, place: Place) -> Call:
    x, indices = place.filled(1_024, width), place.indices(1_024, rows)
    return partial(ATEN.index.Tensor, x, [indices])


def _gather(rows: int, width: int, place: Place) -> Call:
    x, indices = place.filled(rows, width), place.indices(width, rows, width)
    return partial(ATEN.gather.default, x, -1, indices)


def _scatter(rows: int, width: int, place: Place) -> Call:
    x, indices = place.filled(rows, width), place.indices(width, rows, width)
    return partial(ATEN.scatter_add.default, x, -1, indices, x)


def _expanded(rows: int, width: int, place: Place) -> Call:
    x = place.filled(rows, 1).expand(rows, width)  # as in the backward pass of a mean
    return partial(ATEN.div.Scalar, x, 2.0)


def _joined(op: Callable[..., object], dim: int, rows: int, width: int, place: Place) -> Call:
    parts = [place.filled(rows, width // 4) for _ in range(4)]
    return partial(op, parts, dim)


def _padded(rows: int, width: int, place: Place) -> Call:
    x = place.filled(rows, width)
    return partial(ATEN.constant_pad_nd.default, x, [0, 0, 1, -1])


def _turned(rows: int, width: int, place: Place) -> Call:
    # (positions, heads, width of a head) to (heads, positions, width), as around attention
    x = place.filled(rows, width).view(rows, width // 16, 16).transpose(0, 1)
    return partial(ATEN.clone.default, x, memory_format=torch.contiguous_format)


def _masked(rows: int, width: int, place: Place) -> Call:
    x, mask = place.filled(rows, width), place.indices(2, rows, width).bool()
    return partial(ATEN.masked_fill.Scalar, x, mask, 0.0)


def _sorted(rows: int, width: int, place: Place) -> Call:
    x = place.indices(2**20, rows, width).to(place.dtype)
    return partial(ATEN.sort.default, x)


MAKERS: tuple[tuple[torch._ops.OpOverload, Make], ...] = (
    (ATEN._softmax.default, partial(_softmax, ATEN._softmax.default)),
    (ATEN._safe_softmax.default, _safe_softmax),
    (ATEN._log_softmax.default, partial(_softmax, ATEN._log_softmax.default)),
    (ATEN._softmax_backward_data.default, partial(_softmax_backward, ATEN._softmax_backward_data.default)),
    (ATEN._log_softmax_backward_data.default, partial(_softmax_backward, ATEN._log_softmax_backward_data.default)),
    (ATEN.native_layer_norm.default, _layer_norm),
    (ATEN.native_layer_norm_backward.default, _layer_norm_backward),
    (ATEN.native_batch_norm.default, _batch_norm),
    (ATEN.native_batch_norm_backward.default, _batch_norm_backward),
    (ATEN.max_pool2d_with_indices.default, _pool),
    (ATEN.max_pool2d_with_indices_backward.default, _pool_backward),
    (ATEN.sum.dim_IntList, partial(_reduced, ATEN.sum.dim_IntList, 0)),
    (ATEN.sum.dim_IntList, partial(_reduced, ATEN.sum.dim_IntList, -1)),
    (ATEN.mean.dim, partial(_reduced, ATEN.mean.dim, -1)),
    (ATEN.amax.default, partial(_reduced, ATEN.amax.default, -1)),
    (ATEN.embedding.default, _embedding),
    (ATEN.embedding_dense_backward.default, _embedding_backward),
    (ATEN.index.Tensor, _index),
    (ATEN.gather.default, _gather),
    (ATEN.scatter_add.default, _scatter),
    (ATEN.cat.default, partial(_joined, ATEN.cat.default, -1)),
    (ATEN.stack.default, partial(_joined, ATEN.stack.default, 0)),
    (ATEN.constant_pad_nd.default, _padded),
    (ATEN.clone.default, _turned),
    (ATEN.masked_fill.Scalar, _masked),
    (ATEN.sort.default, _sorted),
)
