"""Tells of each op, when it is about to run, whether the filters mean this call of it."""

from collections import Counter
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from nbkit.capture.frames.selection import Selection
from nbkit.capture.raw.recording import OPTIMIZER_CODE, Recording, current_node
from nbkit.capture.replay.op_traits import OpTraits
from nbkit.capture.scope.api_calls import ApiCallNames
from nbkit.capture.scope.filters import EVERY_PHASE, PHASES
from nbkit.capture.scope.module_scope import ModuleScope, NodeAnswers
from nbkit.patterns import split_patterns
from nbkit.timeline.names import BACKWARD_CALLS

FORWARD, BACKWARD, OPTIMIZER, OTHER = (frozenset({phase}) for phase in PHASES)
FILTERED = "ops that the filters leave out"


class CallScope:
    """Asked before every op of a recording, in its order; `numbers` holds how many calls of each op there were.

    Without `api`, the name of the API call around an op is not known, and a pattern that may fit one lets the op pass.
    `leaves_out` says which ops are never meant, and why. Outside modules, the tensors of a call tell forward from
    other: autograd is to follow the call, or the API call around it. Without them an op passes that may be either.
    """

    def __init__(
        self,
        recording: Recording,
        modules: ModuleScope,
        selection: Selection,
        phases: frozenset[str] = EVERY_PHASE,
        calls: Callable[[int], bool] | None = None,
        api: ApiCallNames | None = None,
        leaves_out: Callable[[OpTraits], str | None] = lambda traits: traits.leave_out,
    ) -> None:
        self.recording, self.modules, self.phases, self.calls, self.api = recording, modules, phases, calls, api
        self.leaves_out = leaves_out
        self.include, self.exclude = selection.op_matchers()
        # A pattern that does not name aten ops may fit the API call above.
        self.only_aten = all(pattern.startswith("aten.") for pattern in split_patterns(selection.ops))
        # Which forward calls are meant, and so the calls in the autograd nodes that they make.
        self.meant = NodeAnswers(recording, is_above=modules.of_nodes.is_above) if selection.backward else None
        self.numbers: Counter[str] = Counter()
        self.wanted: dict[str, bool] = {}

    def why_not(self, traits: OpTraits, tensors: Sequence[Tensor] | None = None) -> str | None:
        """Returns why the running call is not meant; None if it is."""
        in_module = self.modules.is_wanted()
        number = self.numbers[traits.name]
        self.numbers[traits.name] += 1
        if self.meant is None:
            return self.leaves_out(traits) or self._filtered(traits, tensors, in_module, number)
        node, reason = current_node(), self._filtered(traits, tensors, in_module, number)
        # What is run again for the backward pass, such as a checkpointed module, is forward work of its own.
        if node is not None and not self._is_rerun() and self.meant.of(node) and not self._is_excluded(traits.name):
            reason = None
        self.meant.add(reason is None)
        return self.leaves_out(traits) or reason

    def _filtered(self, traits: OpTraits, tensors: Sequence[Tensor] | None, in_module: bool, number: int) -> str | None:
        """Returns which filter leaves the running call out."""
        if self.phases != EVERY_PHASE and not self._may_be_in(traits, tensors) & self.phases:
            return "other phases"
        if not self._is_wanted(traits.name):
            return FILTERED
        if not in_module:
            return "modules that the filters leave out"
        if self.calls is not None and not self.calls(number):
            return "calls that the filters leave out"
        return None

    def _may_be_in(self, traits: OpTraits, tensors: Sequence[Tensor] | None) -> frozenset[str]:
        """The phases that the running op may turn out to be in."""
        if current_node() is not None or (self.api is not None and self.api.name in BACKWARD_CALLS):
            return BACKWARD
        call, code = self.recording.thread().context[:2]
        if code == OPTIMIZER_CODE:
            return OPTIMIZER
        if call >= 0:
            return BACKWARD if self._is_rerun() else FORWARD
        if tensors is not None and self.api is not None:
            return FORWARD if _is_followed(tensors) or _is_followed(self.api.tensors()) else OTHER
        # backward() itself makes the first gradient.
        return EVERY_PHASE - OPTIMIZER if traits.packet == "ones_like" else FORWARD | OTHER

    def _is_rerun(self) -> bool:
        """Returns whether a module around the running op is run again for the backward pass."""
        call = self.recording.thread().context[0]
        return call >= 0 and bool(self.recording.module_calls[call][2])

    def _is_wanted(self, name: str) -> bool:
        known = self.wanted.get(name)
        if known is None:
            known = self.wanted[name] = self._fits(name, may_be_api=self.api is None and not self.only_aten)
        above = None if self.api is None else self.api.name
        if above is None:
            return known
        if self.exclude is not None and self.exclude(above):
            return False
        return known or self.include is None or (self.include(above) and not self._is_excluded(name))

    def _fits(self, name: str, *, may_be_api: bool) -> bool:
        return not self._is_excluded(name) and (self.include is None or self.include(name) or may_be_api)

    def _is_excluded(self, name: str) -> bool:
        return self.exclude is not None and self.exclude(name)


def _is_followed(tensors: Sequence[Tensor]) -> bool:
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
