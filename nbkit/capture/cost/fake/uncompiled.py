"""Runs what torch.compile was given op by op: its kernels want values, and on tensors without them end the process."""

import importlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from nbkit.capture.raw.patching import Patch
from nbkit.errors import CostError

DYNAMO = "torch._dynamo.eval_frame"
NODE = "CompiledFunctionBackward"
NOTE = "Code of torch.compile was counted op by op, as without it: fused kernels move fewer bytes and may save others."


class Uncompiled:
    """Has torch.compile hand on what it was given, while entered; `is_met` says whether it had something to hand on."""

    def __init__(self) -> None:
        self.is_met = False
        self.exits = ExitStack()

    def __enter__(self) -> None:
        patch = Patch(importlib.import_module(DYNAMO), "_callback_from_stance")

        def asked(callback: Any) -> Any:
            self.is_met |= callable(callback)
            return patch.before(callback)

        with ExitStack() as stack:
            stack.enter_context(torch.compiler.set_stance("force_eager"))
            patch.install(asked)
            stack.callback(patch.remove)
            self.exits = stack.pop_all()

    def __exit__(self, *error: object) -> None:
        self.exits.close()


@contextmanager
def untraced() -> Iterator[None]:
    """Has transformers take tensors without values as it takes others: it masks otherwise where a graph is traced."""
    module = sys.modules.get("transformers.utils.import_utils")
    patch = Patch(module, "is_fake_tensor")
    if hasattr(module, "is_fake_tensor"):
        patch.install(lambda tensor: False)
    try:
        yield
    finally:
        patch.remove()


def refuse_compiled(nodes: Iterable[Any]) -> None:
    """Raises CostError for a backward pass of a compiled forward pass that ran before the step."""
    if any(node.name() == NODE for node in nodes):
        raise CostError(
            "The forward pass ran in code of torch.compile before the recorded code, and its backward pass needs "
            "values; run both in the recorded code, where opcost counts them op by op."
        )
