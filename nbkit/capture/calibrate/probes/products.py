"""Lists the matrix products, convolutions and attentions that are measured: square, thin, deep and batched ones."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from nbkit.capture.calibrate.probes.probe import Call, Place, Probe

ATEN = torch.ops.aten
# (m, k, n): squares of growing size, then those of layers, of which one side is small or large.
PRODUCTS = (
    (16, 16, 16), (32, 32, 32), (64, 64, 64), (128, 128, 128), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024),
    (1, 1024, 1024), (8, 1024, 1024), (64, 512, 1536), (512, 64, 512), (512, 384, 1536), (384, 512, 1536),
    (512, 384, 4096), (4096, 512, 384), (256, 1024, 4096), (4096, 256, 1024),
)  # fmt: skip
LARGER = ((2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192))
# Matrices (m, k) by (k, n), so many at once: batch, m, k, n.
BATCHED = (
    (64, 16, 16, 16), (32, 32, 64, 32), (48, 128, 64, 128), (48, 128, 128, 64), (16, 256, 64, 256), (16, 256, 256, 64),
    (8, 512, 64, 512),
)  # fmt: skip
LARGER_BATCHED = (
    (128, 512, 64, 512), (128, 512, 512, 64), (8, 1024, 256, 1024), (32, 1024, 128, 1024), (32, 1024, 1024, 128),
    (8, 1024, 1024, 2048),
)  # fmt: skip
# Queries, keys and values of so many: batch, heads, positions, width.
ATTENTIONS = ((1, 4, 32, 16), (2, 8, 128, 64), (2, 8, 256, 64), (2, 8, 512, 64))
# (batch, channels, height and width, channels of the result, kernel, stride, groups)
CONVOLUTIONS = (
    (2, 8, 8, 8, 3, 1, 1), (8, 3, 96, 64, 7, 2, 1), (8, 64, 40, 64, 3, 1, 1), (8, 64, 40, 128, 3, 2, 1),
    (8, 128, 20, 128, 3, 1, 1), (8, 256, 10, 256, 3, 1, 1), (8, 64, 40, 128, 1, 2, 1), (8, 128, 20, 256, 1, 1, 1),
    (4, 3, 128, 192, 16, 16, 1), (4, 96, 20, 96, 7, 1, 96), (8, 64, 40, 64, 3, 1, 64), (8, 64, 20, 128, 3, 1, 4),
)  # fmt: skip
LARGER_CONVOLUTIONS = (
    (64, 256, 14, 256, 3, 1, 1), (64, 128, 28, 256, 1, 1, 1), (64, 96, 28, 96, 7, 1, 96), (64, 64, 56, 128, 1, 2, 1),
    (64, 64, 56, 64, 3, 1, 1), (64, 3, 224, 64, 7, 2, 1),
)  # fmt: skip
Sizes = tuple[int, ...]
Make = Callable[[Place], Call]


def product_probes(place: Place) -> Iterator[Probe]:
    """Yields the probes of products in a dtype, small ones first; an accelerator needs larger ones to be busy."""
    yield from (Probe(ATEN.mm.default, place, _product(sizes)) for sizes in _sizes(place, PRODUCTS, LARGER))


def square_probes(place: Place) -> Iterator[Probe]:
    """Yields the probes of a dtype that steps seldom compute in."""
    yield from (Probe(ATEN.mm.default, place, _product(sizes)) for sizes in PRODUCTS[1:6:2])


def batched_probes(place: Place) -> Iterator[Probe]:
    """Yields the probes of products of many matrices in a dtype."""
    yield from (Probe(ATEN.bmm.default, place, _batched(sizes)) for sizes in _sizes(place, BATCHED, LARGER_BATCHED))


def layer_probes(place: Place) -> Iterator[Probe]:
    """Yields the probes of convolutions, forward and backward, and, on the CPU, of attention."""
    convolutions = _sizes(place, CONVOLUTIONS, LARGER_CONVOLUTIONS)
    yield from (Probe(ATEN.convolution.default, place, _convolution(sizes)) for sizes in convolutions)
    yield from (Probe(ATEN.convolution_backward.default, place, _convolution_backward(sizes)) for sizes in convolutions)
    if place.device.type == "cpu":  # elsewhere the kernel depends on the device
        forward = ATEN._scaled_dot_product_flash_attention_for_cpu.default
        backward = ATEN._scaled_dot_product_flash_attention_for_cpu_backward.default
        yield from (Probe(forward, place, _attention(sizes)) for sizes in ATTENTIONS)
        yield from (Probe(backward, place, _attention_backward(sizes)) for sizes in ATTENTIONS)


def _sizes(place: Place, sizes: tuple[Sizes, ...], larger: tuple[Sizes, ...]) -> tuple[Sizes, ...]:
    return sizes if place.device.type == "cpu" else (*sizes, *larger)


def _product(sizes: Sizes) -> Make:
    def make(place: Place) -> Call:
        m, k, n = sizes
        left, right = place.filled(m, k), place.filled(n, k).t()  # as a layer holds its weight
        return partial(ATEN.mm.default, left, right)

    return make


def _batched(sizes: Sizes) -> Make:
    def make(place: Place) -> Call:
        batch, m, k, n = sizes
        left, right = place.filled(batch, m, k), place.filled(batch, k, n)
        return partial(ATEN.bmm.default, left, right)

    return make


def _layer(sizes: Sizes, place: Place) -> tuple[Tensor, Tensor, tuple[Any, ...]]:
    """Returns the input (B, C, H, W), the weight and the options of a convolution."""
    batch, channels, side, out, kernel, stride, groups = sizes
    padding = 0 if stride == kernel else kernel // 2
    options = ([stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups)
    return place.filled(batch, channels, side, side), place.filled(out, channels // groups, kernel, kernel), options


def _convolution(sizes: Sizes) -> Make:
    def make(place: Place) -> Call:
        x, weight, options = _layer(sizes, place)
        return partial(ATEN.convolution.default, x, weight, None, *options)

    return make


def _convolution_backward(sizes: Sizes) -> Make:
    def make(place: Place) -> Call:
        x, weight, options = _layer(sizes, place)
        gradient = torch.empty_like(ATEN.convolution.default(x, weight, None, *options)).fill_(0.5)
        wanted = [sizes[1] > 3, True, False]  # that of an image is not asked for
        return partial(ATEN.convolution_backward.default, gradient, x, weight, None, *options, wanted)

    return make


def _attention(sizes: Sizes) -> Make:
    def make(place: Place) -> Call:
        query, key, value = (place.filled(*sizes) for _ in range(3))
        return partial(ATEN._scaled_dot_product_flash_attention_for_cpu.default, query, key, value, 0.0, True)

    return make


def _attention_backward(sizes: Sizes) -> Make:
    def make(place: Place) -> Call:
        query, key, value, gradient = (place.filled(*sizes) for _ in range(4))
        out, sums = ATEN._scaled_dot_product_flash_attention_for_cpu.default(query, key, value, 0.0, True)
        backward = ATEN._scaled_dot_product_flash_attention_for_cpu_backward.default
        return partial(backward, gradient, query, key, value, out, sums, 0.0, True)

    return make
