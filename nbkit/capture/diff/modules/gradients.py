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

from nbkit.capture.diff.modules.reference_mode import NotRunError
from nbkit.capture.diff.modules.run import Key
from nbkit.capture.raw.recording import ACCUMULATE

CAST = "ToCopyBackward0"
SECOND = "second backward passes (create_graph=True)"
NOTHING = (0.0, 0.0)
ROUNDINGS = 16
Edge = tuple[Any, int]  # a node of autograd, and the number of its output


@dataclass
class BackwardPass:
    """Holds what one backward pass brought: totals of the outputs, and for each key what the call's nodes passed on."""

    slot: int
    totals: dict[Key, Tensor] = field(default_factory=dict)  # of the outputs, in the reference's precision
    sums: dict[Key, Tensor] = field(default_factory=dict)
    dtypes: dict[Key, torch.dtype] = field(default_factory=dict)
    shadows: dict[Key, Tensor] = field(default_factory=dict)
    inner: dict[Key, tuple[complex, float]] = field(default_factory=dict)  # what nodes of the call gave to other ones
    enters_elsewhere: bool = False
    heard: set[tuple[int, int]] = field(default_factory=set)
    end: int = 0

    def given(self) -> dict[int, Tensor]:
        """Returns the gradients that came to the outputs from outside the call."""
        return {key[1]: total - self.sums[key] if key in self.sums else total for key, total in self.totals.items()}


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
        """Returns which of them an edge leads to, if it does.

        Autocast may share the cast of a leaf between calls: what leads to the cast is what this call gives to the leaf.
        """
        if type(node).__name__ == CAST and type(node.next_functions[0][0]) is ACCUMULATE:
            node = node.next_functions[0][0]
        if type(node) is ACCUMULATE:
            leaf: Any = node
            return self.leaves.get(id(leaf.variable))
        return self.nodes.get((node, number))


class GradientHooks:
    """Collects the backward passes through a call and hands each over once it is whole.

    `copied` brings a gradient to the reference, `slot` tells how many ops there have been, `on_pass` takes a pass;
    hooks do their work by `work`. Those with a pass under way are in `under_way`; others live as long as the graph.
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
        self.refused: str | None = None  # why later passes are left out

    def attach(self, outputs: list[Tensor], before: InputEdges, first: int) -> bool:
        """Puts hooks on the nodes that the call made, those numbered from `first` on; tells whether there are any."""
        made: dict[Edge, Key] = {}
        for number, tensor in enumerate(outputs):
            node = tensor.grad_fn
            if node is not None and before.key(node, tensor.output_nr) is None and _number(node) >= first:
                made.setdefault((node, tensor.output_nr), ("output", number))
        nodes = [*dict.fromkeys(node for node, _ in made)]
        places = {node: place for place, node in enumerate(nodes)}
        for node in nodes:  # which grows
            for at, (following, number) in enumerate(node.next_functions):
                if following is None:
                    continue
                key = before.key(following, number) or made.get((following, number))
                is_inside = _number(following) >= first and (key is None or key[0] == "output")
                if is_inside and following not in places:
                    places[following] = len(nodes)
                    nodes.append(following)
                if key is None and is_inside:
                    key = (f"node {places[following]}", number)
                if key is not None:
                    self.edges[(places[node], at)] = key
        if not any(kind in ("input", "parameter") for kind, _ in self.edges.values()):
            return False
        self._hook(nodes, made)
        return True

    def _hook(self, nodes: list[Any], made: dict[Edge, Key]) -> None:
        outputs: dict[Any, dict[int, Key]] = {}
        for (node, number), key in made.items():
            outputs.setdefault(node, {})[number] = key
        for place, node in enumerate(nodes):
            edges = {at: key for (one, at), key in self.edges.items() if one == place}
            name = f"node {place}"
            inner = {number: (name, number) for kind, number in self.edges.values() if kind == name}
            self.handles.append(node.register_prehook(self._before({**inner, **outputs.get(node, {})})))
            self.handles.append(node.register_hook(self._after(place, edges)))

    def _before(self, keys: dict[int, Key]) -> Callable[..., None]:
        def hook(gradients: Any) -> None:
            # A graph of the backward pass may lead a second one to any node of the call, not to its outputs alone.
            if torch.is_grad_enabled():
                self.refused = SECOND
            elif self.refused is not None:
                self.work(self._refuse)
                return
            self.work(lambda: self._came(keys, gradients))

        return hook

    def _after(self, place: int, edges: dict[int, Key]) -> Callable[..., None]:
        def hook(gradients: Any, _: Any) -> None:
            if self.now is not None:  # else nothing came to the outputs, as after a write to them
                self.work(lambda: self._passed(place, edges, gradients))

        return hook

    def _refuse(self) -> None:
        self.now = None
        raise NotRunError(str(self.refused))

    def _came(self, keys: dict[int, Key], gradients: tuple[Tensor | None, ...]) -> None:
        """Takes the gradients that come to a node, right before it runs."""
        if self.now is not None and any(key in self.now.totals for key in keys.values()):
            self.finish()
        came = {key: gradient for at, key in keys.items() if (gradient := gradients[at]) is not None}
        if self.now is None and not any(kind == "output" for kind, _ in came):
            return
        now = self.now = self.now or BackwardPass(self.slot())
        self.under_way.add(self)
        for key, gradient in came.items():
            if key[0] == "output":
                now.totals[key] = self.copied(gradient)
            elif _differ(_sums(gradient), now.inner.get(key, NOTHING), torch.finfo(gradient.dtype).eps):
                now.enters_elsewhere = True

    def _passed(self, place: int, edges: dict[int, Key], gradients: tuple[Tensor | None, ...]) -> None:
        """Takes what a node has passed on."""
        now = self.now
        if now is None:
            return
        for at, key in edges.items():
            now.heard.add((place, at))
            gradient = gradients[at]
            if gradient is None:
                continue
            if key[0].startswith("node"):
                before, more = now.inner.get(key, NOTHING), _sums(gradient)
                now.inner[key] = before[0] + more[0], before[1] + more[1]
                continue
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
        if now is not None and now.enters_elsewhere:
            raise NotRunError("backward passes that enter the call of a module elsewhere than at its outputs")
        if now is not None and now.totals and any(kind != "output" for kind, _ in now.sums):
            self.on_pass(now)

    def remove(self) -> None:
        """Takes the hooks away."""
        for handle in self.handles:
            handle.remove()
        self.handles.clear()


def _add(sums: dict[Key, Tensor], key: Key, value: Tensor | None) -> None:
    if value is not None:
        sums[key] = sums[key] + value if key in sums else value


def _sums(gradient: Tensor) -> tuple[complex, float]:
    """Returns the sum of all elements and that of their magnitudes, which tell whether gradients are the same."""
    wide = gradient.detach().to(torch.complex128 if gradient.is_complex() else torch.float64)
    return wide.sum().item(), float(wide.abs().sum())


def _differ(total: tuple[complex, float], parts: tuple[complex, float], eps: float) -> bool:
    """Returns whether a total is more than its parts, beyond rounding."""
    return abs(total[0] - parts[0]) > ROUNDINGS * eps * (total[1] + parts[1])


def _number(node: Any) -> int:
    """Returns the number of a node in the order in which its thread made nodes; -1 for one without."""
    return -1 if type(node) is ACCUMULATE else int(node._sequence_nr())
