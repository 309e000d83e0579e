"""Reads what the arguments of an event in a Chrome trace tell: FLOPs, and a collective's bytes and process group."""

from ast import literal_eval
from collections.abc import Mapping
from math import prod
from typing import Any

from nbkit.ops.collectives import group_text
from nbkit.ops.flops import call_flops, formulas
from nbkit.readers.chrome.columns import whole
from nbkit.readers.chrome.names import element_bytes, is_collective


class EventFlops:
    """Finds the FLOPs of an event: what the file says, else what its arguments tell, worked out once for each."""

    def __init__(self) -> None:
        self._formulas = {name.replace(".", "::"): formula for name, formula in formulas().items()}
        self._known: dict[tuple[str, str, str], int | None] = {}

    def knows(self, name: str) -> bool:
        """Returns whether there is a formula for ops of this name."""
        return name in self._formulas

    def of(self, name: str, args: Mapping[str, Any]) -> object:
        """Returns the FLOPs of an event with these args; None if they are not known."""
        if args.get("flops"):
            return args["flops"]
        shapes, values = args.get("Input Dims"), args.get("Concrete Inputs")
        if name not in self._formulas or not isinstance(shapes, list):
            return None
        values = values if isinstance(values, list) and [] in shapes else []
        key = name, str(shapes), str(values)
        if key not in self._known:
            self._known[key] = self._worked_out(name, shapes, [_value(text) for text in values])
        return self._known[key]

    def _worked_out(self, name: str, shapes: list[Any], values: list[Any]) -> int | None:
        """Returns the FLOPs by a formula; a call handed on by a transform of torch.func has its inputs twice."""
        found = call_flops(self._formulas[name], shapes, values)
        half = len(shapes) // 2
        if found is None and half and shapes[:half] == shapes[half:]:
            return call_flops(self._formulas[name], shapes[:half], values[:half])
        return found


def _value(text: object) -> Any:
    """Returns the value behind a text; None for a tensor, which has no text, and for what is no plain value."""
    try:
        return literal_eval(str(text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def collective_bytes(name: str, args: Mapping[str, Any]) -> int | None:
    """Returns the bytes that go into a collective; None if the event is none or does not tell."""
    if "Collective name" in args:
        elements, size = whole(args.get("In msg nelems")), element_bytes(args.get("dtype"))
        return None if elements is None or size is None else elements * size
    if not is_collective(name):
        return None
    shapes, dtypes = args.get("Input Dims"), args.get("Input type")
    if not isinstance(shapes, list) or not isinstance(dtypes, list):
        return None
    sizes = [_tensor_bytes(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=False)]
    known = [size for size in sizes if size is not None]
    return sum(known) if known else None


def collective_group(args: Mapping[str, Any]) -> str | None:
    """Returns description or name, and ranks, of the process group: "default_pg (2 ranks)"; None if it has neither."""
    words = str(args.get("Process Group Description") or args.get("Process Group Name") or "")
    ranks = whole(args.get("Group size"))
    return group_text(words, ranks or 0)


def _tensor_bytes(shape: object, dtype: object) -> int | None:
    size = element_bytes(dtype)
    if size is None or not isinstance(shape, list) or not all(isinstance(length, int) for length in shape):
        return None
    return prod(shape) * size
