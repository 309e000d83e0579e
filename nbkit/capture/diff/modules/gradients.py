"""Hears of the gradients that flow through one call of a module, by hooks on the nodes of its part of the graph.

A tensor hook on an input would hear the sum over all that reads the tensor, and torch's full backward hooks put nodes
into the graph, which changes what the step may do with the outputs. What a call itself gives to an input or a
parameter is what its nodes pass along the edges that lead there: these are found once, right after the call, and each
belongs to one argument, in whatever order autograd lists them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from nbkit.capture.diff.modules.run import Key
from nbkit.capture.raw.recording import ACCUMULATE

Edge = tuple[Any, int]  # a node of autograd, and the number of its output
Found = dict[Key, list[tuple[int, int]]]  # edges by what they lead to: number of the node, and of its input


@dataclass
class BackwardPass:
    """Holds what one backward pass brought: totals of the outputs, and for each key what the call's nodes passed on."""

    slot: int
    totals: dict[int, Tensor] = field(default_factory=dict)  # by number of the output, in the reference's precision
    sums: dict[Key, Tensor] = field(default_factory=dict)
    dtypes: dict[Key, torch.dtype] = field(default_factory=dict)
    shadows: dict[Key, Tensor] = field(default_factory=dict)
    heard: set[tuple[int, int]] = field(default_factory=set)
    end: int = 0

    def given(self) -> dict[int, Tensor]:
        """Returns the gradients that came to the outputs from outside the call."""
        return {
            number: total - self.sums[("output", number)] if ("output", number) in self.sums else total
            for number, total in self.totals.items()
        }


class InputEdges:
    """Knows where the inputs and parameters of a module stand in autograd's graph before its call."""

    def __init__(self, inputs: Iterable[Tensor], module: nn.Module) -> None:
        self.nodes: dict[Edge, Key] = {}
        self.leaves: dict[int, Key] = {}
        for kind, tensors in (("input", inputs), ("parameter", module.parameters())):
            for number, tensor in enumerate(tensors):
                if tensor.grad_fn is not None:
                    self.nodes.setdefault((tensor.grad_fn, tensor.output_nr), (kind, number))
                elif tensor.requires_grad:
                    self.leaves.setdefault(id(tensor), (kind, number))

    def key(self, node: Any, number: int) -> Key | None:
        """Returns which of them an edge leads to, if it does."""
        if type(node) is ACCUMULATE:
            return self.leaves.get(id(node.variable))
        return self.nodes.get((node, number))


class GradientHooks:
    """Collects the backward passes through a call and hands each over once it is whole.

    `copied` brings a gradient to the reference, `slot` tells how many ops there have been, `on_pass` takes a pass; hooks
    do their work by `work`. Those with a pass under way are in `under_way`; others live as long as the graph.
    """

    def __init__(
        self,
        work: Callable[[Callable[[], object]], object],
        slot: Callable[[], int],
        copied: Callable[[Tensor], Tensor],
        shadow_of: Callable[[Tensor], Tensor | None],
        on_pass: Callable[[BackwardPass], object],
        under_way: set["GradientHooks"],
    ) -> None:
        self.work, self.slot, self.copied, self.shadow_of = work, slot, copied, shadow_of
        self.on_pass, self.under_way = on_pass, under_way
        self.edges: dict[tuple[int, int], Key] = {}
        self.handles: list[Any] = []
        self.now: BackwardPass | None = None

    def attach(self, outputs: list[Tensor], before: InputEdges, first: int) -> bool:
        """Puts hooks on the nodes that the call made, those numbered from `first` on; tells whether there are any."""
        roots = {number: tensor for number, tensor in enumerate(outputs) if tensor.grad_fn is not None}
        made: dict[Edge, Key] = {}
        for number, tensor in roots.items():
            node = tensor.grad_fn
            if before.key(node, tensor.output_nr) is None and _number(node) >= first:
                made.setdefault((node, tensor.output_nr), ("output", number))
        nodes = [*dict.fromkeys(node for node, _ in made)]
        seen = set(nodes)
        hooked = []
        while nodes:
            node = nodes.pop()
            place = len(hooked)
            hooked.append(node)
            for at, (following, number) in enumerate(node.next_functions):
                if following is None:
                    continue
                key = before.key(following, number)
                key = key or made.get((following, number))
                if key is not None:
                    self.edges[(place, at)] = key
                if (key is None or key[0] == "output") and following not in seen and _number(following) >= first:
                    seen.add(following)
                    nodes.append(following)
        if not any(kind != "output" for kind, _ in self.edges.values()):
            return False
        self._hook(hooked, made)
        return True

    def _hook(self, nodes: list[Any], made: dict[Edge, Key]) -> None:
        at_node: dict[Any, dict[int, int]] = {}
        for (node, number), (_, output) in made.items():
            at_node.setdefault(node, {})[number] = output
        for node, outputs in at_node.items():
            self.handles.append(node.register_prehook(self._before(outputs)))
        for place, node in enumerate(nodes):
            edges = {at: key for (one, at), key in self.edges.items() if one == place}
            if edges:
                self.handles.append(node.register_hook(self._after(place, edges)))

    def _before(self, outputs: dict[int, int]) -> Callable[..., None]:
        def hook(gradients: Any) -> None:
            self.work(lambda: self._came(outputs, gradients))

        return hook

    def _after(self, place: int, edges: dict[int, Key]) -> Callable[..., None]:
        def hook(gradients: Any, _: Any) -> None:
            self.work(lambda: self._passed(place, edges, gradients))

        return hook

    def _came(self, outputs: dict[int, int], gradients: tuple[Tensor | None, ...]) -> None:
        """Takes the gradients of outputs, right before the node that made these runs."""
        if self.now is not None and any(number in self.now.totals for number in outputs.values()):
            self.finish()
        now = self.now = self.now or BackwardPass(self.slot())
        self.under_way.add(self)
        for at, number in outputs.items():
            gradient = gradients[at]
            if gradient is not None:
                now.totals[number] = self.copied(gradient)

    def _passed(self, place: int, edges: dict[int, Key], gradients: tuple[Tensor | None, ...]) -> None:
        """Takes what a node has passed on."""
        now = self.now
        if now is None:
            return  # an output was written to after the call: what comes to it is not known
        for at, key in edges.items():
            now.heard.add((place, at))
            gradient = gradients[at]
            if gradient is not None:
                now.dtypes.setdefault(key, gradient.dtype)
                _add(now.sums, key, self.copied(gradient))
                _add(now.shadows, key, self.shadow_of(gradient))
        now.end = self.slot()
        if len(now.heard) == len(self.edges):
            self.finish()

    def finish(self) -> None:
        """Hands over the pass that is under way, if there is one."""
        now, self.now = self.now, None
        self.under_way.discard(self)
        if now is not None and now.totals and now.sums:
            self.on_pass(now)

    def remove(self) -> None:
        """Takes the hooks away."""
        for handle in self.handles:
            handle.remove()
        self.handles.clear()


def _add(sums: dict[Key, Tensor], key: Key, value: Tensor | None) -> None:
    if value is not None:
        sums[key] = sums[key] + value if key in sums else value


def _number(node: Any) -> int:
    """Returns the number of a node in the order in which its thread made nodes; -1 for one without."""
    return -1 if type(node) is ACCUMULATE else int(node._sequence_nr())
