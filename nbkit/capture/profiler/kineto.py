"""Switches torch.profiler's own engine, Kineto, on around a step.

The raw events are read directly: `profile.events()` makes a Python object of each, which takes most of its time.
"""

import ctypes
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock, current_thread
from time import perf_counter_ns
from typing import Any, ClassVar

import torch
from torch._C._autograd import _disable_profiler, _enable_profiler, _prepare_profiler, _profiler_enabled
from torch._C._profiler import ProfilerActivity, ProfilerConfig, ProfilerState, _EventType
from torch.autograd import profiler

from nbkit.capture.raw.patching import Patch
from nbkit.compat.torch_versions import current_accelerator, experimental_config
from nbkit.errors import OptionError, first_line, nearest

ERROR = 2
LIBRARIES = ("libc10.so", "libc10.dylib", "c10.dll")
# What Kineto tells about itself; anything else that it prints is kept as a note.
CHATTER = ("USDT:", "INFO:", "STAGE:")
ROUNDS, REPEATS = 5, 50  # of the measurement of its overhead
DEVICES = {
    "cuda": ProfilerActivity.CUDA,
    "xpu": ProfilerActivity.XPU,
    "mtia": ProfilerActivity.MTIA,
    "privateuse1": ProfilerActivity.PrivateUse1,
}


@dataclass(frozen=True)
class KinetoOptions:
    """Says what Kineto records beyond names and times; `device` is a key of DEVICES, None for the CPU alone."""

    memory: bool
    shapes: bool
    device: str | None


class Kineto:
    """Runs the engine once. `start()` and `stop()` print nothing; what Kineto had to say is in `notes`.

    A profiler that the step starts itself needs the engine: `on_taken`, which must call stop(), runs before it begins.
    """

    # The one that is on: torch's engine is one per process. With a second start in one thread both lose events, or
    # write to what is freed; one from another thread crashes it.
    running: ClassVar["Kineto | None"] = None
    lock: ClassVar = Lock()

    def __init__(self, options: KinetoOptions, on_taken: Callable[[], None] | None = None) -> None:
        self.options, self.on_taken = options, on_taken or self.stop
        self.notes: list[str] = []
        self.log = MutedCppLog()
        self.thread = current_thread()
        self.is_lost = False
        self.starts = [Patch(profiler, name) for name in ("_prepare_profiler", "_enable_profiler")]

    def start(self) -> None:
        """Switches it on for this thread and autograd's threads for it. Raises OptionError if it is on already."""
        with Kineto.lock:
            check_free()
            Kineto.running, self.thread = self, current_thread()
        try:
            self._enable()
        except BaseException:
            Kineto.running = None
            raise

    def _enable(self) -> None:
        options = self.options
        config = ProfilerConfig(
            ProfilerState.KINETO,
            options.shapes,
            options.memory,
            False,  # with_stack
            False,  # with_flops
            False,  # with_modules
            experimental_config(capture_overload_names=True, expose_kineto_event_metadata=options.device is not None),
        )
        activities = {ProfilerActivity.CPU} | ({DEVICES[options.device]} if options.device else set())
        with muted_stderr(self.notes):
            _prepare_profiler(config, activities)
            _enable_profiler(config, activities)
        for start in self.starts:
            start.install(_making_way(start))
        if options.memory:
            self.log.start()

    def stop(self) -> Any:
        """Switches it off and returns the raw result. Work that a device has not finished is waited for.

        Only the thread that switched it on can switch it off: in any other the result is None.
        """
        self.log.stop()
        if self.thread is not current_thread():
            self.is_lost = True
            return None
        try:
            self._wait()
            return self._disable()
        finally:
            Kineto.running = None

    def _disable(self) -> Any:
        for start in self.starts:
            start.remove()
        with muted_stderr(self.notes):
            return _disable_profiler()

    def _wait(self) -> None:
        """Waits for the device; one that has failed, as after an assertion in a kernel, has no more to say."""
        if self.options.device is not None and self.options.device != "privateuse1":
            try:
                getattr(torch, self.options.device).synchronize()
            except Exception as error:
                self.notes.append(f"work of the device may be missing, waiting for it failed: {first_line(error)}")


def check_free() -> None:
    """Raises OptionError if a profiler is on: there can be only one in a process.

    One of ours that was left in another thread is switched off where it runs, which is the first chance to do so.
    """
    running = Kineto.running
    if running is not None and running.is_lost:
        if running.thread is current_thread() and _profiler_enabled():
            running._disable()
        if running.thread is current_thread() or not running.thread.is_alive():
            running = Kineto.running = None
    if _profiler_enabled():
        raise OptionError("A profiler is running in this thread already (torch.profiler or optime); end it first.")
    if running is not None:
        raise OptionError(f"An optime that began in the thread {running.thread.name!r} is running; end it there first.")
    if profiler._is_profiler_enabled:
        raise OptionError("torch.profiler is running in another thread already; end it first.")


def _making_way(start: Patch) -> Callable[..., Any]:
    """Returns what starts another profiler of torch after the one that is on has ended."""

    def started(*args: Any, **kwargs: Any) -> Any:
        running = Kineto.running
        if running is not None and running.is_lost:
            check_free()
        elif running is not None and running.thread is not current_thread():
            raise OptionError(
                f"A profiler cannot begin here: optime is running in the thread {running.thread.name!r}, and torch has "
                "one profiler per process; begin it before or after."
            )
        elif running is not None:
            running.on_taken()
        return start.before(*args, **kwargs)

    return started


def device_to_record(device: str | torch.device | None) -> str | None:
    """Returns the key of DEVICES for the option `device`: None picks the accelerator that is there, "cpu" none.

    Raises OptionError for a device that is not known or not there.
    """
    accelerator = current_accelerator()
    present = None if accelerator is None else accelerator.type if accelerator.type in DEVICES else "privateuse1"
    if device is None:
        return present
    kind = str(device).partition(":")[0]
    if kind == "cpu":
        return None
    if kind not in DEVICES and (accelerator is None or kind != accelerator.type):
        raise OptionError(f"device={device!r} is not known; {nearest(kind, ['cpu', *DEVICES])}")
    if present is None or kind not in (present, accelerator.type if accelerator else None):
        devices = accelerator.type if accelerator else "only the CPU"
        raise OptionError(f"device={device!r} is not there: torch sees {devices}.")
    return present


@contextmanager
def muted_stderr(notes: list[str]) -> Iterator[None]:
    """Keeps what Kineto writes to the file descriptor of stderr, past sys.stderr, out of the user's cell."""
    if sys.stderr is not None:  # a process without a console has none
        sys.stderr.flush()
    try:
        saved = os.dup(2)
    except OSError:  # stderr is closed: nobody would see it
        yield
        return
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            file.seek(0)
            lines = file.read().decode(errors="replace").splitlines()
            notes += [line for line in lines if line.strip() and not line.startswith(CHATTER)]


def allocations(result: Any) -> Iterator[Any]:
    """Yields the allocation events of a result, in tree order; only there do addresses and totals stand."""
    pending = list(result.experimental_event_tree())
    while pending:
        node = pending.pop()
        if node.tag == _EventType.Allocation:
            yield node
        pending += node.children


@cache
def event_overhead_us(options: KinetoOptions) -> float:
    """Measures the microseconds that recording adds per event, once per process; the fastest of the rounds.

    The first use of Kineto in a process takes far longer than later ones: this is that use. It draws no random numbers.
    """
    bare = min(_calls_us() for _ in range(ROUNDS))
    traced, events = [], 1
    for _ in range(ROUNDS):
        kineto = Kineto(options)
        kineto.start()
        try:
            traced.append(_calls_us())
        finally:
            events = max(len(kineto.stop().events()), 1)
    return max(min(traced) - bare, 0.0) / events


def _calls_us() -> float:
    x, y = torch.ones(8, 8), torch.ones(8, 8)
    with torch.no_grad():
        start = perf_counter_ns()
        for _ in range(REPEATS):
            torch.add(torch.mm(x.t(), torch.mul(x, y)).view(64), 1.0).sum()
        return (perf_counter_ns() - start) / 1e3


class MutedCppLog:
    """Holds back C++ warnings between start() and stop().

    A memory recording makes torch log "Memory block of unknown size was allocated before the profiling started" at
    every thousandth free of such a block.
    """

    def __init__(self) -> None:
        self.before: int | None = None

    def start(self) -> None:
        level = _log_level()
        if level is not None and self.before is None:
            self.before, level.value = level.value, max(level.value, ERROR)

    def stop(self) -> None:
        level = _log_level()
        if level is not None and self.before is not None:
            level.value, self.before = self.before, None


@cache
def _log_level() -> ctypes.c_int | None:
    """Returns the variable of the C++ library; None where this build of torch has no such symbol."""
    for name in LIBRARIES:
        path = Path(torch.__file__).parent / "lib" / name
        if path.exists():
            try:
                return ctypes.c_int.in_dll(ctypes.CDLL(str(path)), "FLAGS_caffe2_log_level")
            except (OSError, ValueError):
                return None
    return None
