"""Compares what a call returned and wrote with what was captured: form, aliases, and values to the bit."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from nbkit.capture.calls.encode import NotCapturedError, decoded
from nbkit.capture.calls.memory import layout_parts, memory_of
from nbkit.capture.calls.rebuilding import BuiltCall
from nbkit.capture.calls.taking import needs_no_values
from nbkit.capture.operators.replay.kept import kept_results
from nbkit.capture.operators.replay.run import Ran, Result, is_dense
from nbkit.capture.replay.copies import all_tensors
from nbkit.errors import TraceError
from nbkit.ops.families import UNFILLED
from nbkit.trace.calls.layout import Record


def results(ran: Ran) -> list[Result]:
    """Returns all results of a call, of one without results the one that says so. Raises TraceError."""
    record, built = ran.built.record, ran.built
    if "outputs" not in record and "compared" in record:
        return [*kept_results(ran)]
    try:
        outputs = list(record["outputs"])
    except (KeyError, TypeError) as error:
        raise TraceError("its record has no outputs") from error
    actual = [*_leaves(list(ran.out) if isinstance(ran.out, list | tuple) else [ran.out])]
    expected = [*map(_expected, _leaves(outputs))]
    if len(actual) != len(expected):
        return [Result("output", 0, None, None, f"{len(actual)} results, expected {len(expected)}")]
    compared = [_compared(ran, number, *pair) for number, pair in enumerate(zip(actual, expected, strict=True))]
    return [*compared, *_written(ran, built, [value for value in actual if isinstance(value, Tensor)])]


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _expected(output: Any) -> Any:
    """Returns a result as its record has it; a complex number as such."""
    if not isinstance(output, dict) or "complex" not in output:
        return output
    try:
        return decoded(output, ())
    except (TypeError, ValueError, OverflowError) as error:
        raise TraceError("its record cannot be used: a result is no complex number") from error


def _compared(ran: Ran, position: int, actual: Any, expected: Any) -> Result:
    is_tensor = isinstance(expected, dict) and "tensor" in expected
    if not is_tensor or not isinstance(actual, Tensor):
        # NaN equals itself here.
        same = not is_tensor and (actual == expected or (actual != actual and expected != expected))
        return Result("output", position, actual, None, None if same else f"{actual!r}, expected {expected!r}")
    limit = ran.traits.values
    is_memory = limit is not None and position >= limit
    return _tensor_result(ran, ("output", position), actual, expected["tensor"], is_memory=is_memory)


def _written(ran: Ran, built: BuiltCall, returned: list[Tensor]) -> Iterator[Result]:
    """Yields what the call wrote to without returning it."""
    inputs = all_tensors(built.args, built.kwargs)
    for pair in built.record.get("written", ()):
        try:
            before, after = pair
            tensor = built.argument(before)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise TraceError("its record cannot be used: it does not say what was written") from error
        if not any(tensor is other for other in returned):
            position = next((number for number, other in enumerate(inputs) if other is tensor), 0)
            yield _tensor_result(ran, ("input", position), tensor, after)


def _tensor_result(ran: Ran, place: tuple[str, int], actual: Tensor, number: int, *, is_memory: bool = False) -> Result:
    built = ran.built
    try:
        entry = built.record["tensors"][number]
        difference = _other_form(actual, entry) or _other_alias(ran, actual, number)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise TraceError("its record cannot be used: it does not describe a result") from error
    if difference is not None:
        return Result(*place, actual, None, difference)
    note = _no_values(ran, actual, is_memory)
    if note is not None:
        return Result(*place, actual, None, None, note=note)
    expected = built.result(number)
    if same_bits(actual, expected):
        return Result(*place, actual, expected, None)
    return Result(*place, actual, expected, "other bits", has_other_bits=True)


def _no_values(ran: Ran, actual: Tensor, is_memory: bool) -> str | None:
    """Returns why the values of a result are not compared; None where they are."""
    if ran.traits.packet in UNFILLED:
        return "uninitialized memory: only its form is compared"
    if is_memory:
        return "memory for the backward op: only its form is compared"
    inputs = ran.built.inputs.values()
    if needs_no_values(ran.traits) and any(_storage(actual) == memory_of(base).key for base in inputs):
        return "a view: form and memory are compared"
    return None


def _other_form(actual: Tensor, entry: Record) -> str | None:
    """Returns what differs in dtype, shape, layout, strides or lazy bits."""
    facts: list[tuple[str, Any, Any]] = [
        ("dtype", str(actual.dtype).removeprefix("torch."), entry["dtype"]),
        ("shape", list(actual.shape), entry["shape"]),
        ("layout", str(actual.layout).removeprefix("torch."), entry.get("layout", "strided")),
    ]
    if is_dense(actual) and "storage" in entry:
        facts += [
            ("conj", actual.is_conj(), entry.get("conj", False)),
            ("neg", actual.is_neg(), entry.get("neg", False)),
        ]
        if actual.numel():
            stride = entry.get("stride", torch.empty(actual.shape, device="meta").stride())
            kept = [axis for axis, size in enumerate(actual.shape) if size > 1]
            facts.append(("strides", [actual.stride(axis) for axis in kept], [stride[axis] for axis in kept]))
            facts.append(("storage offset", actual.storage_offset(), entry.get("offset", 0)))
    for name, value, expected in facts:
        if value != expected:
            return f"{name} {value}, expected {expected}"
    return None


def _other_alias(ran: Ran, actual: Tensor, number: int) -> str | None:
    """Returns what differs in whose memory a result lies in."""
    if not is_dense(actual) or not actual.numel():
        return None
    (storage,) = ran.built.storages_of(number) or (None,)
    own = _storage(actual)
    known = {place: memory_of(base).key for place, base in ran.built.inputs.items()}
    if storage in known:
        return None if known[storage] == own else "memory of its own, expected that of an argument"
    return "the memory of an argument, expected its own" if own in known.values() else None


def _storage(tensor: Tensor) -> int:
    try:
        return memory_of(tensor).key
    except NotCapturedError:
        return 0


def same_bits(actual: Tensor, expected: Tensor) -> bool:
    """Returns whether two tensors of one form have the same bits in each element."""
    if actual._is_zerotensor() or expected._is_zerotensor():
        return actual._is_zerotensor() == expected._is_zerotensor()
    if not is_dense(actual):
        if actual.layout is torch.sparse_coo and actual.is_coalesced() != expected.is_coalesced():
            return False
        pairs = [*zip(layout_parts(actual), layout_parts(expected), strict=True)]
        return all(one.shape == other.shape and same_bits(one, other) for one, other in pairs)
    if not actual.numel():
        return True
    return torch.equal(_bytes(actual), _bytes(expected))


def _bytes(tensor: Tensor) -> Tensor:
    plain = tensor.detach().cpu().resolve_conj().resolve_neg()
    return plain.contiguous().reshape(-1).view(torch.uint8)
