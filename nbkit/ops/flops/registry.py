"""Keeps the formulas of ops' products: those of the table of rules, of the user and of torch."""

import re
import sys
from collections.abc import Callable, Sequence
from itertools import zip_longest
from types import FunctionType
from typing import Any, TypeVar

from nbkit.errors import OptionError
from nbkit.ops.flops.products import Formula
from nbkit.ops.flops.rules import RULES

AnyFormula = TypeVar("AnyFormula", bound=Formula)
OP = re.compile(r"\w+\.\w+")
# The library of the ops that stand for functions of Python, where these have a rule for shapes.
PYTHON = "python"
NO_NAME = r"\W"


def register_flop_formula(targets: object) -> Callable[[AnyFormula], AnyFormula]:
    """Returns a decorator that registers a function as the FLOP formula (2 x multiply-adds) of one op or several.

    `targets` is an op such as `torch.ops.mylib.attention`, its name ("mylib.attention"), or a list of them; all
    overloads of an op share its formula. The formula gets the arguments of a call in their order: for a tensor the list
    of its sizes, [] for an absent one, and numbers, flags and lists as they are. `optime`, and `load` of a Chrome
    trace, fill `ops.flops` with what it returns; a call that it raises on keeps a null. A second formula for an op
    replaces the first. Formulas registered by `torch.utils.flop_counter.register_flop_formula` count too, if they need
    no more than these arguments. Of a function of Python that has a rule for shapes (`register_shape_formula`) it gets
    one list, with the sizes of each tensor that the function is given. Raises OptionError for a target that is no op.

        @nbkit.register_flop_formula("mylib.attention")
        def attention(query, key, value, *others):
            return 4 * query[0] * query[1] * key[1] * query[2]
    """
    names = [packet_name(target) for target in (targets if isinstance(targets, list | tuple) else [targets])]

    def register(formula: AnyFormula) -> AnyFormula:
        FORMULAS.update(dict.fromkeys(names, formula))
        return formula

    return register


def packet_name(op: object) -> str:
    """Returns the name of an op without its overload: aten.mm for "aten::mm", "aten.mm.default" or the op itself.

    Of a function of Python it is that of the op that stands for it where its shape rule runs: python.package_function.
    """
    if isinstance(op, FunctionType):
        return f"{PYTHON}.{re.sub(NO_NAME, '_', f'{op.__module__}.{op.__qualname__}')}"
    if match := OP.match(str(op).replace("::", ".")):
        return match[0]
    raise OptionError(f"{op!r} is not an op; give one such as torch.ops.mylib.attention, or its name.")


def formulas() -> dict[str, Formula]:
    """Returns all formulas by op name: those of this table, and for other ops those registered with torch."""
    # Whoever registered one with torch has imported this module; importing it here would cost what nobody may need.
    registry = getattr(sys.modules.get("torch.utils.flop_counter"), "flop_registry", {})
    # What torch did not wrap wants tensors, not shapes; what is no op of a library has another form of name.
    theirs = {str(op): formula for op, formula in registry.items() if hasattr(formula, "__wrapped__")}
    return {name: formula for name, formula in theirs.items() if OP.fullmatch(name)} | FORMULAS


def call_flops(formula: Formula, shapes: Sequence[Any], values: Sequence[Any] = ()) -> int | None:
    """Returns the FLOPs of a call, whose `values` are null for tensors; None if the formula cannot tell."""
    call = [shape if value is None else value for shape, value in zip_longest(shapes, values)]
    try:
        return int(formula(*call))
    except Exception:  # one that the user registered, too, must not cost the recording
        return None


# By the op's name without its overload; what a user registers comes on top.
FORMULAS: dict[str, Formula] = {name: rule.flops for name, rule in RULES.items() if rule.flops is not None}
