"""Counts the aten calls of a step, as torch's profiler reports them, and the bytes that they read and wrote."""

from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import sha1
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Contents(TorchDispatchMode):
    """Holds the size of each different content of a storage that an op read or made, and of the states of the
    generator that random ops began with.

    What `empty` returns and what views look at is left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[tuple[int, bytes], int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        is_computing = not func.is_view and "empty" not in func._opname
        if is_computing:
            self._note((args, kwargs))
        if torch.Tag.nondeterministic_seeded in func.tags:
            self._note(generator_state(torch.get_default_device()))
        out = func(*args, **(kwargs or {}))
        if is_computing:
            self._note((args, kwargs, out))
        return out

    def _note(self, values: Any) -> None:
        for value in tree_leaves(values):
            if isinstance(value, Tensor):
                for part in _parts(value):
                    storage = part.untyped_storage()
                    whole = torch.empty(0, dtype=torch.uint8, device=part.device)
                    data = whole.set_(storage).cpu().numpy().tobytes() if storage.nbytes() else b""
                    self.sizes[len(data), sha1(data).digest()] = len(data)


def generator_state(device: torch.device) -> Tensor:
    return torch.cuda.get_rng_state() if device.type == "cuda" else torch.get_rng_state()


def _parts(tensor: Tensor) -> list[Tensor]:
    if tensor.layout is torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout is torch.sparse_csr:
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    return [tensor]


def unique_bytes(step: Callable[[], Any]) -> int:
    """Returns the bytes of the different contents that the aten calls of a step read and wrote."""
    with Contents() as contents:
        step()
    return sum(contents.sizes.values())


def calls(step: Callable[[], Any]) -> Counter[str]:
    """Returns how many calls of each op a step makes, by "mm.default": those that come to a kernel of their own.

    A dispatch mode would see others: under one, autograd adds gradients out of place and detaches what it saves.
    """
    config = torch.profiler._ExperimentalConfig(capture_overload_names=True)
    with torch.profiler.profile(experimental_config=config) as profile:
        step()
    found: Counter[str] = Counter()
    for event in profile.events():
        if _has_kernel(event) and not any(map(_has_kernel, _around(event))):
            found[f"{event.name.removeprefix('aten::')}.{event.overload_name or 'default'}"] += 1
    return found


def _around(event: Any) -> Iterator[Any]:
    while (event := event.cpu_parent) is not None:
        yield event


def _has_kernel(event: Any) -> bool:
    """Returns whether an event is an op that does its work itself; others call ops which do."""
    if not event.name.startswith("aten::"):
        return False
    name = f"{event.name}.{event.overload_name}" if event.overload_name else event.name
    return not torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")
