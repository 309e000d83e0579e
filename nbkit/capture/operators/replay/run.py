"""Runs one captured call again from its captured inputs, once or many times, and says what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._ops import OpOverload

from nbkit.capture.calls.collectives import RUNS, run_collective
from nbkit.capture.calls.rebuilding import BuiltCall, Content, refusing
from nbkit.capture.calls.state import as_recorded
from nbkit.capture.recorder.op_forms import is_reshaping
from nbkit.capture.replay.devices import default_generator, device_of
from nbkit.capture.replay.isolated import isolated
from nbkit.capture.replay.muted_warnings import MutedWarnings
from nbkit.capture.replay.op_traits import OpTraits, traits_of
from nbkit.errors import TraceError, first_line
from nbkit.trace.calls.layout import Record


@dataclass
class Ran:
    """Holds a call that has run again: what it was made of, what came of it, and the time of each run in us.

    The first `warmup` of these are not to count.
    """

    built: BuiltCall
    traits: OpTraits
    out: Any
    raised: Exception | None
    device: torch.device
    runs_us: list[float]
    warmup: int


class Result(NamedTuple):
    """Describes one compared result: `actual` beside the captured one, and what differs in words, null for nothing."""

    role: str  # output, or input for one that is written to and not returned
    position: int
    actual: Any
    expected: Tensor | None  # null where its values are not in the record or decide nothing
    difference: str | None
    has_other_bits: bool = False
    note: str | None = None


class CallRunner:
    """Runs calls on `device`, null for where each was captured, `warmup` times and then `repeats` times."""

    def __init__(
        self, content: Content, state: Mapping[str, Any], device: torch.device | None, warmup: int, repeats: int
    ) -> None:
        self.content, self.state, self.device, self.warmup, self.repeats = content, state, device, warmup, repeats

    def build(self, record: Record) -> BuiltCall:
        """Returns the call with its inputs. Raises TraceError."""
        try:
            return BuiltCall(record, self.content, self.device)
        except TraceError as error:
            storages = record.get("storages")
            entries = [entry for entry in storages if isinstance(entry, dict)] if isinstance(storages, list) else []
            device = next((entry["device"] for entry in entries if "device" in entry), None)
            if isinstance(device, str) and self.device is None and not _is_here(device):
                raise TraceError(f"{device}, where it ran, is not here; give device='cpu' to run it there") from error
            raise

    def run(self, record: Record, op: OpOverload) -> Ran:
        """Returns the call after it has run; what comes back is that of the first run. Raises TraceError."""
        traits, built = traits_of(op), self.build(record)
        with refusing("its record cannot be used"), isolated(), as_recorded({**self.state, **built.state}):
            device = device_of(built.args, built.kwargs)
            if built.generator is not None and built.generator.device.type != default_generator(device).device.type:
                raise TraceError(
                    f"it draws from a generator of {built.generator.device}, and {device} draws other numbers"
                )
            # A call that changes its arguments needs new ones each time.
            is_once = traits.changes_arguments or is_reshaping(op)
            times, first, raised = [], None, None
            for number in range(self.warmup + self.repeats):
                call = self.build(record) if number and is_once else built
                out, raised, elapsed = _timed(op, call, device)
                first = out if not number else first
                if raised is not None:
                    break
                times.append(elapsed)
        return Ran(built, traits, first, raised, device, times, self.warmup)


def _timed(op: OpOverload, call: BuiltCall, device: torch.device) -> tuple[Any, Exception | None, float]:
    """Returns what the op returned, or what it raised, and the microseconds it took; the generator stays as it was."""
    generator = default_generator(device) if call.generator is not None else None
    before = torch.empty(0) if generator is None else generator.get_state()
    if generator is not None and call.generator is not None:
        generator.set_state(call.generator.get_state())
    try:
        # Autograd has nothing to record, and was above where the call was captured.
        with MutedWarnings() as muted, torch._C._AutoDispatchBelowAutograd():
            _wait(device)
            out, elapsed = muted.run(lambda: _clocked(op, call, device))
            return out, None, elapsed
    except Exception as error:
        return None, error, 0.0
    finally:
        if generator is not None:
            generator.set_state(before)


def _clocked(op: OpOverload, call: BuiltCall, device: torch.device) -> tuple[Any, float]:
    started = perf_counter_ns()
    name = str(op)
    out = run_collective(name, call.args) if name in RUNS else op(*call.args, **call.kwargs)
    _wait(device)
    return out, (perf_counter_ns() - started) / 1e3


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type != "cpu" and (module := getattr(torch, device.type, None)) is not None:
        module.synchronize()


def _is_here(device: str) -> bool:
    try:
        torch.empty(0, device=device)
    except Exception:  # each kind of device says so by another
        return False
    return True


def raised_text(error: Exception) -> str:
    """Returns what a call raised, as records have it."""
    return f"{type(error).__name__}: {first_line(error)}"


def is_dense(tensor: Tensor) -> bool:
    """Returns whether a tensor has one memory with strides."""
    return tensor.layout is torch.strided and not tensor._is_zerotensor()
