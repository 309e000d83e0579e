"""Notes each clipping of gradients by norm while a recording runs: what it met, and whether a GradScaler came after."""

import sys
from typing import Any

from torch.nn.utils import clip_grad

from nbkit.capture.raw.patching import Patch
from nbkit.capture.raw.recording import Recording
from nbkit.capture.raw.source import code_text, location_text, user_location
from nbkit.capture.replay.isolated import timed_isolated
from nbkit.findings.training.facts import Clip

# torch.nn.utils.clip_grad_norm_ looks it up at each call, also where a script imported that by name.
INNER = "_clip_grads_with_norm_"


class Clips:
    """Holds the clippings of a recording, while installed."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.noted: list[Clip] = []
        self.patch = Patch(clip_grad, INNER)

    def install(self) -> None:
        if not hasattr(clip_grad, INNER):  # another version of torch
            return
        patch = self.patch

        def clip(parameters: Any, max_norm: Any, total_norm: Any, *args: Any, **kwargs: Any) -> Any:
            location = user_location(sys._getframe(1))
            timed_isolated(self.recording, lambda: self._note(max_norm, total_norm, location), lambda error: None)
            return patch.before(parameters, max_norm, total_norm, *args, **kwargs)

        patch.install(clip)

    def remove(self) -> None:
        if self.patch.function is not None:
            self.patch.remove()

    def _note(self, most: Any, norm: Any, location: Any) -> None:
        source, text = (None, None) if location is None else (location_text(location), code_text(location))
        self.noted.append(Clip(self.recording.step, float(norm), float(most), source, text))

    def before_scaler_steps(self, scaler: Any, optimizer: Any) -> None:
        """Notes the loss scale that the gradients still had when they were clipped, where unscale_() did not run."""
        state = scaler._per_optimizer_states.get(id(optimizer))
        is_unscaled = state is not None and state["stage"].name != "READY"
        scale = 1.0 if scaler._scale is None else float(scaler._scale)
        for number, clip in enumerate(self.noted):
            if clip.step == self.recording.step and clip.scale is None:
                self.noted[number] = clip._replace(scale=1.0 if is_unscaled else scale)
