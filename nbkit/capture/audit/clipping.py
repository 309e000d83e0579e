"""Notes each clipping of gradients by norm while a recording runs: what it met, and whether a GradScaler came after."""

import sys
from collections.abc import Callable, Container, Iterable
from typing import Any
from weakref import ref

from torch import Tensor
from torch.nn.utils import clip_grad

from nbkit.capture.audit.measures import memory_of
from nbkit.capture.raw.patching import Patch
from nbkit.capture.raw.recording import Recording
from nbkit.capture.raw.source import code_text, location_text, user_location
from nbkit.capture.replay.isolated import timed_isolated
from nbkit.findings.training.facts import Clip

# torch.nn.utils.clip_grad_norm_ looks it up at each call, also where a script imported that by name.
INNER = "_clip_grads_with_norm_"


class Clips:
    """Holds the clippings of a recording, while installed; `passes` counts backward passes."""

    def __init__(
        self, recording: Recording, audited: Callable[[], Iterable[Tensor]], passes: Callable[[], int]
    ) -> None:
        self.recording, self.audited, self.passes = recording, audited, passes
        # The memory of gradients that a step read last, and their versions then, by ids of parameters.
        self.used: dict[int, tuple[Any, int]] = {}
        self.noted: list[Clip] = []
        self.given: list[frozenset[int]] = []  # ids of the parameters, of each
        self.sets: dict[frozenset[int], int] = {}
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
        clipped = [parameters] if isinstance(parameters, Tensor) else [*parameters]
        given = frozenset(map(id, clipped))
        others = (one.grad for one in self.audited() if not float(norm) and id(one) not in given)
        has_others = any(gradient is not None and bool(gradient.any()) for gradient in others)
        clip = Clip(self.recording.step, float(norm), float(most), source, text, given=len(given))
        whose = self.sets.setdefault(given, len(self.sets))
        is_late = all(self.is_used(one) for one in clipped if one.grad is not None)
        self.noted.append(clip._replace(has_others=has_others, whose=whose, passes=self.passes(), is_late=is_late))
        self.given.append(given)

    def is_used(self, parameter: Tensor) -> bool:
        """Returns whether the last step of its optimizer read the gradient as it is now."""
        gradient, (memory, version) = parameter.grad, self.used.get(id(parameter), (None, -1))
        is_same = gradient is not None and memory is not None and memory() is memory_of(gradient)
        return gradient is not None and is_same and version == gradient._version

    def _use(self, parameter: Tensor) -> None:
        gradient = parameter.grad
        memory = None if gradient is None or gradient.is_inference() else memory_of(gradient)
        self.used.pop(id(parameter), None)
        if gradient is not None and memory is not None:
            self.used[id(parameter)] = ref(memory), gradient._version

    def before_pass(self) -> None:
        """Notes that the gradients which were clipped last are still there, so that a backward pass adds to them."""
        if self.noted and self.noted[-1].is_late and self.noted[-1].passes == self.passes():
            gradients = [one.grad for one in self.audited() if id(one) in self.given[-1]]
            is_kept = any(gradient is not None and bool(gradient.any()) for gradient in gradients)
            self.noted[-1] = self.noted[-1]._replace(is_late=not is_kept)

    def before_step(self, groups: Container[int], parameters: Iterable[Tensor]) -> None:
        """Notes of the clippings for this step whether the optimizer updates what they were given.

        It notes the gradients that the step is about to read, too: they are those of `parameters`.
        """
        for parameter in parameters:
            self._use(parameter)
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
