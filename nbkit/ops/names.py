"""Reads the names of aten ops: "add_" and "add" of "aten.add_.Tensor", "aten::add_" or "add_" itself."""

import re
from functools import cache

_ATEN = re.compile(r"^aten(?:\.|::)")
_OVERLOAD = re.compile(r"^[a-z]\w*(?:\.|::)\w+(?=\.)")


@cache
def packet_of(op: str | None) -> str:
    """Returns the name of an op without overload, and without namespace if that is aten's; "" for null.

    Ops of other libraries keep their namespace ("mylib.add"): they are no ops of aten. So do functions of torch's API.
    """
    if op is None:
        return ""
    if aten := _ATEN.match(op):
        return op[aten.end() :].partition(".")[0]
    if op.startswith("torch."):
        return op
    other = _OVERLOAD.match(op)
    return (other[0] if other else op).replace("::", ".")


@cache
def bare_name(op: str | None) -> str:
    """Returns the name of an op without overload and any namespace: "addmm" of "aten.addmm.default", "torch.addmm"."""
    return packet_of(op).rpartition(".")[2]


@cache
def base_of(op: str | None) -> str:
    """Returns the name of an op without overload and in-place mark: "add" of "aten.add_.Tensor"."""
    name = packet_of(op)
    return name.rstrip("_") or name
