"""Lists the ops that are measured by the bytes they move: elementwise ones, copies, updates in place, views."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from nbkit.capture.calibrate.probes.probe import Call, Place, Probe

ATEN = torch.ops.aten
# Elements of the largest tensor: from what launching costs, over each cache, to what memory gives.
ELEMENTS = (64, 4_096, 32_768, 262_144, 1_048_576, 4_194_304)
FEWER = (64, 65_536, 1_048_576)
# What grows as the largest: a result of fresh memory, which takes long where the system gives it anew, and none.
LARGEST, LARGEST_OF = 16_777_216, (ATEN.add.Tensor, ATEN.copy_.default)
# One tensor in, one out.
UNARY: tuple[tuple[Any, tuple[Any, ...]], ...] = (
    (ATEN.neg.default, ()),
    (ATEN.relu.default, ()),
    (ATEN.exp.default, ()),
    (ATEN.log.default, ()),
    (ATEN.sqrt.default, ()),
    (ATEN.rsqrt.default, ()),
    (ATEN.tanh.default, ()),
    (ATEN.sigmoid.default, ()),
    (ATEN.sin.default, ()),
    (ATEN.erf.default, ()),
    (ATEN.gelu.default, ()),
    (ATEN.silu.default, ()),
    (ATEN.pow.Tensor_Scalar, (2,)),
    (ATEN.mul.Tensor, (0.5,)),
    (ATEN.div.Tensor, (0.5,)),
    (ATEN.clone.default, ()),
    (ATEN.cumsum.default, (-1,)),
)
# Two tensors in, one out.
BINARY: tuple[tuple[Any, tuple[Any, ...]], ...] = (
    (ATEN.add.Tensor, ()),
    (ATEN.mul.Tensor, ()),
    (ATEN.div.Tensor, ()),
    (ATEN.maximum.default, ()),
    (ATEN.threshold_backward.default, (0,)),
    (ATEN.gelu_backward.default, ()),
    (ATEN.silu_backward.default, ()),
    (ATEN.sigmoid_backward.default, ()),
    (ATEN.tanh_backward.default, ()),
)
# What they write is their first tensor; how many tensors they take, and what else.
IN_PLACE: tuple[tuple[Any, int, tuple[Any, ...]], ...] = (
    (ATEN.fill_.Scalar, 1, (0.5,)),
    (ATEN.mul_.Tensor, 1, (0.999,)),
    (ATEN.div_.Tensor, 1, (1.001,)),
    (ATEN.tanh_.default, 1, ()),
    (ATEN.sigmoid_.default, 1, ()),
    (ATEN.bernoulli_.float, 1, (0.9,)),
    (ATEN.normal_.default, 1, ()),
    (ATEN.uniform_.default, 1, ()),
    (ATEN.add_.Tensor, 1, (0.001,)),
    (ATEN.copy_.default, 2, ()),
    (ATEN.lerp_.Scalar, 2, (0.1,)),
    (ATEN.addcmul_.default, 3, ()),
    (ATEN.addcdiv_.default, 3, ()),
)
VIEWS: tuple[tuple[Any, tuple[Any, ...]], ...] = (
    (ATEN.view.default, ([-1, 8],)),
    (ATEN.t.default, ()),
    (ATEN.transpose.int, (0, 1)),
    (ATEN.permute.default, ([1, 0],)),
    (ATEN.unsqueeze.default, (0,)),
    (ATEN.select.int, (0, 1)),
    (ATEN.split.Tensor, (4,)),
    (ATEN.unbind.int, (0,)),
    (ATEN.slice.Tensor, (0, 0, 4)),
    (ATEN.expand.default, ([16, 16],)),
    (ATEN.detach.default, ()),
)


def elementwise_probes(place: Place) -> Iterator[Probe]:
    """Yields the probes of a dtype, small ones first; fewer of another than float32, larger ones on accelerators."""
    yield from (Probe(op, place, partial(_view, op, options)) for op, options in VIEWS)
    is_float32, is_cpu = place.dtype == torch.float32, place.device.type == "cpu"
    yield Probe(ATEN.empty.memory_format, place, _empty)
    if is_cpu:  # an accelerator waits for all that it was given before
        yield Probe(ATEN._local_scalar_dense.default, place, _item)
    for elements in (*(ELEMENTS if is_float32 else FEWER), *(() if is_cpu else (LARGEST,))):
        yield Probe(ATEN.zeros.default, place, partial(_zeros, elements))
        for op, options in UNARY:
            yield Probe(op, place, partial(_called, op, 1, options, elements))
        for op, options in BINARY:
            yield Probe(op, place, partial(_called, op, 2, options, elements))
        for op, tensors, options in IN_PLACE:
            yield Probe(op, place, partial(_called, op, tensors, options, elements))
    if is_float32 and is_cpu:
        yield from (Probe(op, place, partial(_called, op, 2, (), LARGEST)) for op in LARGEST_OF)


def _empty(place: Place) -> Call:
    return partial(ATEN.empty.memory_format, [64], dtype=place.dtype, device=place.device)


def _item(place: Place) -> Call:
    return partial(ATEN._local_scalar_dense.default, place.filled(1))


def _zeros(elements: int, place: Place) -> Call:
    return partial(ATEN.zeros.default, [elements], dtype=place.dtype, device=place.device)


def _called(op: Callable[..., object], tensors: int, options: tuple[Any, ...], elements: int, place: Place) -> Call:
    given = [place.filled(elements) for _ in range(tensors)]
    return partial(op, *given, *options)


def _view(op: Callable[..., object], options: tuple[Any, ...], place: Place) -> Call:
    given = place.filled(16, 16)
    return partial(op, given, *options)
