"""Tells the ops that autograd's engine runs between two nodes: it sums gradients of what was taken more than once."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from nbkit.capture.cost.fake.uncompiled import refuse_compiled
from nbkit.capture.raw.patching import Patch
from nbkit.capture.raw.recording import current_node
from nbkit.step.reachable import reachable


class EngineSums:
    """Follows each backward pass while entered.

    torch still names the node before while its engine sums what that node returned. A hook after each node tells when
    the node itself is through.
    """

    def __init__(self) -> None:
        self.passed: Any = None  # the node that is through
        self.patch = Patch(torch.autograd, "_engine_run_backward")

    def __enter__(self) -> "EngineSums":
        patch = self.patch

        def _engine_run_backward(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            nodes = _nodes(outputs)
            refuse_compiled(nodes)
            hooks = [node.register_hook(self._note) for node in nodes]
            try:
                return patch.before(outputs, *args, **kwargs)
            finally:
                self.passed = None
                for hook in hooks:
                    hook.remove()

        patch.install(_engine_run_backward)
        return self

    def __exit__(self, *error: object) -> None:
        self.patch.remove()

    def _note(self, *gradients: Any) -> None:
        self.passed = current_node()

    def is_running(self) -> bool:
        """Returns whether the engine itself runs the op that is running."""
        return self.passed is not None and current_node() is self.passed


def _nodes(outputs: Iterable[Any]) -> list[Any]:
    """Returns all nodes of the graphs that end in these tensors or edges."""
    ends = (output.grad_fn if isinstance(output, Tensor) else output.node for output in outputs)
    nodes = reachable(ends, lambda node: () if node is None else [before for before, _ in node.next_functions])
    return [node for node in nodes if node is not None]
