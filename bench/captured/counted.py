"""Counts, with a dispatch mode of its own, the aten calls of a step and the bytes that these read and wrote."""

from collections import Counter
from collections.abc import Callable
from hashlib import sha1
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Counting(TorchDispatchMode):
    """Holds the calls by op, and the size of each different content of a storage that an op read or made, and of
    the states of the generator that random ops began with.

    What `empty` returns and what views look at is left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()
        self.contents: dict[tuple[int, bytes], int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls[str(func)] += 1
        is_computing = not func.is_view and "empty" not in func._opname
        if is_computing:
            self._note((args, kwargs))
        if torch.Tag.nondeterministic_seeded in func.tags:
            self._note(torch.get_rng_state())
        out = func(*args, **(kwargs or {}))
        if is_computing:
            self._note((args, kwargs, out))
        return out

    def _note(self, values: Any) -> None:
        for value in tree_leaves(values):
            if isinstance(value, Tensor):
                for part in _parts(value):
                    storage = part.untyped_storage()
                    data = (
                        torch.empty(0, dtype=torch.uint8).set_(storage).numpy().tobytes() if storage.nbytes() else b""
                    )
                    self.contents[len(data), sha1(data).digest()] = len(data)


def _parts(tensor: Tensor) -> list[Tensor]:
    if tensor.layout is torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout is torch.sparse_csr:
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    return [tensor]


def counted(step: Callable[[], Any]) -> tuple[int, int]:
    """Returns the number of aten calls of a step, and the bytes of the different contents that they read and wrote."""
    with Counting() as counting:
        step()
    return sum(count for name, count in counting.calls.items() if name.startswith("aten.")), sum(
        counting.contents.values()
    )
