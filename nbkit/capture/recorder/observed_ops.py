"""Sees every aten op through torch's own observer, which changes nothing of what runs; in the native library."""

from collections.abc import Callable, Sequence
from typing import Any

from nbkit.capture.raw.arguments import describe
from nbkit.capture.raw.recording import Recording
from nbkit.capture.raw.shards import is_dtensor
from nbkit.capture.raw.source import ENGINE_CODE, code_kind, node_location
from nbkit.capture.recorder.observer import Observer
from nbkit.capture.recorder.op_forms import is_hidden, is_reshaping


class ObservedOps:
    """Records each op that torch reports while entered, in the thread that enters it and autograd's for it, or in all.

    `inner_ops` records every call that torch reports; else those that come to a kernel of their own, and not what
    composite ops and kernels call.
    """

    def __init__(
        self,
        recording: Recording,
        on_range: Callable[[bool], None],
        observers: Sequence[Observer] = (),
        inner_ops: bool = False,
        in_all_threads: bool = False,
    ) -> None:
        self.recording = recording
        self.on_range = on_range
        self.observers = observers
        self.inner_ops = inner_ops
        self.in_all_threads = in_all_threads
        self.slot = -1

    def __enter__(self) -> "ObservedOps":
        native: Any = self.recording.native
        lend(native)
        if self.inner_ops:
            self.recording.sequence_read = "before"
        watching = [observer.native for observer in self.observers if observer.native is not None]
        checker, capturer = (
            next((one for one in watching if isinstance(one, kind)), None) for kind in (native.Checker, native.Capturer)
        )
        self.slot = native.observe(
            self.recording, self.on_range, self.inner_ops, self.in_all_threads, checker, capturer
        )
        return self

    def pause(self, paused: bool) -> None:
        """Leaves out what this thread runs from now on; takes it in again with False."""
        native: Any = self.recording.native
        if self.slot >= 0:
            native.pause_observing(self.slot, paused)

    def __exit__(self, *error: object) -> None:
        native: Any = self.recording.native
        if self.slot >= 0:
            native.unobserve(self.slot)
            self.slot = -1


def lend(native: Any) -> None:
    """Gives the library what it asks of Python; it takes that once per process."""
    native.install(is_hidden, is_reshaping, code_kind, node_location, describe, is_dtensor, ENGINE_CODE)
