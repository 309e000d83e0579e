"""Names the nodes of a model's forward pass as torch.fx names those of its graph."""

import builtins
import keyword
import re
from dis import opname
from types import FrameType, FunctionType
from typing import Any

from torch import Tensor

CALL_FUNCTION, CALL_METHOD = "call_function", "call_method"
METHOD = type(Tensor.add)
NUMBERED = re.compile(r"(.+)_([0-9]+)")
# Operators that torch's methods call otherwise than Python's module `operator` does.
OPERATORS = {"div": "truediv", "remainder": "mod", "__rdiv__": "truediv", "__get__": "getattr"}
REFLECTED = re.compile("__r(add|sub|mul|matmul|div|floordiv|mod|pow|and|or|xor|lshift|rshift)__")


class Names:
    """Gives each node a name of its own, an identifier that is no keyword and no builtin: add, add_1, sum_1."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.last: dict[str, int] = {}

    def name(self, wanted: str) -> str:
        """Returns the name of a node that is called, such as `encoder.layers.0`, with a number if that is taken."""
        plain = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", re.sub(r"\W", "_", wanted)).lower() or "root"
        plain = f"_{plain}" if plain[0].isdigit() else plain
        match = NUMBERED.fullmatch(plain)
        base, number = (match[1], int(match[2])) if match else (plain, self.last.get(plain, 0))
        while plain in self.taken or keyword.iskeyword(plain) or hasattr(builtins, plain):
            number += 1
            plain = f"{base}_{number}"
        self.taken.add(plain)
        self.last[base] = number
        return plain


def function_name(func: Any, caller: FrameType) -> tuple[str, str]:
    """Returns kind and name of a call that a function mode sees: x + y is the function add, x.add(y) a method.

    Both call the same method of torch; the instruction that `caller` is at tells them apart.
    """
    name = getattr(func, "__name__", type(func).__name__)
    if match := REFLECTED.fullmatch(name):
        return CALL_FUNCTION, OPERATORS.get(name, match[1])
    is_operator = name.startswith("__")
    if type(func) is METHOD:
        is_operator |= not opname[caller.f_code.co_code[caller.f_lasti]].startswith("CALL")
    elif isinstance(func, FunctionType) and not is_operator and func.__qualname__.startswith("Tensor."):
        return CALL_METHOD, name
    if is_operator:
        return CALL_FUNCTION, OPERATORS.get(name, name.strip("_") if name.startswith("__") else name)
    return CALL_METHOD if type(func) is METHOD else CALL_FUNCTION, name
