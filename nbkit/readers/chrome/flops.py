"""Reads the FLOPs of the events of a Chrome trace: what the file says, else what their arguments tell."""

from ast import literal_eval
from collections.abc import Mapping
from typing import Any

from nbkit.flops import call_flops, formulas


class EventFlops:
    """Holds FLOPs by op and arguments, each worked out once."""

    def __init__(self) -> None:
        self._formulas = {name.replace(".", "::"): formula for name, formula in formulas().items()}
        self._known: dict[tuple[str, str, str], int | None] = {}

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
            self._known[key] = call_flops(self._formulas[name], shapes, [_value(text) for text in values])
        return self._known[key]


def _value(text: object) -> Any:
    """Returns the value behind a text; None for a tensor, which has no text, and for what is no plain value."""
    try:
        return literal_eval(str(text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
