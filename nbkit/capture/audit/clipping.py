"""Notes each clipping of gradients by norm while a recording runs: what it met, and whether a GradScaler came after."""

import sys
from collections.abc import Callable, Container, Iterable
from typing import Any

from torch import Tensor
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

    def __init__(self, recording: Recording, audited: Callable[[], Iterable[Tensor]]) -> None:
        self.recording, self.audited = recording, audited
        self.noted: list[Clip] = []
        self.given: list[frozenset[int]] = []  # ids of the parameters, of each
        self.patch = Patch(clip_grad, INNER)

    def install(self) -> None:
        if not hasattr(clip_grad, INNER):  # another version of torch
            return
        patch = self.patch

        def clip(parameters: Any, max_norm: Any, total_norm: Any, *args: Any, **kwargs: Any) -> Any:
            location = user_location(sys._getframe(1))
            timed_isolated(
                self.recording, lambda: self._note(parameters, max_norm, total_norm, location), lambda error: None
            )
            return patch.before(parameters, max_norm, total_norm, *args, **kwargs)

        patch.install(clip)

    def _note(self, parameters: Any, most: Any, norm: Any, location: Any) -> None:
        source, text = (None, None) if location is None else (location_text(location), code_text(location))
        given = frozenset(map(id, [parameters] if isinstance(parameters, Tensor) else parameters))
        others = (one.grad for one in self.audited() if not float(norm) and id(one) not in given)
        has_others = any(gradient is not None and bool(gradient.any()) for gradient in others)
        clip = Clip(
            self.recording.step, float(norm), float(most), source, text, given=len(given), has_others=has_others
        )
        self.noted.append(clip)
        self.given.append(given)

    def before_step(self, groups: Container[int]) -> None:
        """Notes of the clippings for this step whether the optimizer updates what they were given."""
        for number, clip in enumerate(self.noted):
            if clip.step == self.recording.step and any(one in groups for one in self.given[number]):
                self.noted[number] = clip._replace(is_updated=True)

    def before_scaler_steps(self, scaler: Any, optimizer: Any) -> None:
        """Notes the loss scale that the gradients still had when they were clipped, where unscale_() did not run."""
        state = scaler._per_optimizer_states.get(id(optimizer))
        is_unscaled = state is not None and state["stage"].name != "READY"
        scale = 1.0 if scaler._scale is None else float(scaler._scale)
        for number, clip in enumerate(self.noted):
            if clip.step == self.recording.step and clip.scale is None:
                self.noted[number] = clip._replace(scale=1.0 if is_unscaled else scale)
