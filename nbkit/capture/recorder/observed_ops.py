"""Sees every aten op through torch's own observer, which changes nothing of what runs; in the native library."""

from collections.abc import Callable
from typing import Any

from nbkit.capture.raw.recording import Recording
from nbkit.capture.recorder.dispatch_mode import install


class ObservedOps:
    """Records each op that torch reports while entered, in the thread that enters it and autograd's for its work."""

    def __init__(self, recording: Recording, on_range: Callable[[bool], None]) -> None:
        self.recording = recording
        self.on_range = on_range
        self.slot = -1

    def __enter__(self) -> "ObservedOps":
        native: Any = self.recording.native
        install(native)
        self.recording.sequence_is_after = True
        self.slot = native.observe(self.recording, self.on_range)
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
