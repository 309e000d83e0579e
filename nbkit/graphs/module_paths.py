"""Builds the modules frame of a graph that only names them, path by path, as its nodes do."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pandas as pd

from nbkit.schema import MODULES


@dataclass
class _Module:
    type: str | None = None
    calls: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Held:
    """Describes a parameter or buffer: `identity` is the same for those that are one tensor."""

    path: str
    identity: object
    numel: int
    size_bytes: int
    is_buffer: bool = False
    is_trainable: bool = True


class ModulePaths:
    """Collects modules by path, in the order in which they were first named, parents before what they hold."""

    def __init__(self) -> None:
        self._modules: dict[str, _Module] = {}
        self._held: list[Held] = []

    def called(self, path: str, type_name: str | None, call: str = "") -> None:
        """Notes a call of a module of this class; `call` tells its calls apart."""
        module = self._at(path)
        module.type = module.type or type_name
        module.calls.add(call)

    def holds(self, tensor: Held) -> None:
        """Notes a parameter or buffer, whose path names the modules that hold it."""
        self._at(tensor.path.rpartition(".")[0])
        self._held.append(tensor)

    def frame(self, model: str) -> pd.DataFrame:
        """Returns the modules frame; `model` is its label if the root's class is not known."""
        label = self._modules[""].type or model if self._modules else model
        rows = [
            {
                "model": label,
                "module": path,
                "type": module.type,
                "parent": path.rpartition(".")[0] if path else None,
                "depth": path.count(".") + 1 if path else 0,
                "calls": len(module.calls),
            }
            for path, module in self._modules.items()
        ]
        sizes = self._sizes()
        return MODULES.frame([row | sizes[str(row["module"])] for row in rows])

    def _at(self, path: str) -> _Module:
        for above in holders(path):
            self._modules.setdefault(above, _Module())
        return self._modules.setdefault(path, _Module())

    def _sizes(self) -> dict[str, dict[str, int]]:
        columns = ("params", "trainable_params", "param_bytes", "buffer_bytes")
        sizes = {path: dict.fromkeys(columns, 0) for path in self._modules}
        counted: set[tuple[str, object]] = set()
        for held in self._held:
            for path in holders(held.path):
                if (path, held.identity) in counted:
                    continue
                counted.add((path, held.identity))
                size = sizes[path]
                if held.is_buffer:
                    size["buffer_bytes"] += held.size_bytes
                else:
                    size["params"] += held.numel
                    size["trainable_params"] += held.numel * held.is_trainable
                    size["param_bytes"] += held.size_bytes
        return sizes


def holders(path: str) -> Iterator[str]:
    """Yields paths of the modules that hold `path`, the root first."""
    pieces = path.split(".") if path else []
    for end in range(len(pieces)):
        yield ".".join(pieces[:end])
