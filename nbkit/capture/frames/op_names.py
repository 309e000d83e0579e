"""Names an op: `aten.addmm.default`, `torch.nn.functional.linear`, `torch.Tensor.add_`."""

from functools import cache
from typing import Any

from torch._ops import HigherOrderOperator, OpOverload
from torch.overrides import resolve_name


@cache
def op_name(func: Any) -> str:
    """Returns the name of a dispatcher op, an API function, or text as it is."""
    if isinstance(func, str):
        return func
    if isinstance(func, OpOverload):
        return str(func)
    if isinstance(func, HigherOrderOperator):
        return f"higher_order.{func.name()}"
    qualified = getattr(func, "__qualname__", None) or getattr(func, "__name__", None) or repr(func)
    if qualified.startswith("_VariableFunctionsClass."):  # torch.mm is also torch.spmm: the function knows its name
        return f"torch.{func.__name__}"
    return resolve_name(func) or f"{getattr(func, '__module__', None) or 'torch'}.{qualified}"
