"""Fault is a pair of implementations whose right one does something else in one place, and what may be said of it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import nn

from tests.align_cases.ports import PORTS
from tests.align_cases.ports.port import Port

KINDS = frozenset(
    "transposed permuted_heads repeated_heads rotary_layout rotary_base epsilon scale missing_bias missing_residual "
    "mask_shifted mask_inverted missing_mask activation norm_place accumulation_dtype swapped_operands other_weights "
    "untied_weight nan position_shifted".split()
)
Plant = Callable[[nn.Module, nn.Module], None]


@dataclass(frozen=True)
class Fault:
    """Says where a fault is, by module paths; the root is the empty path.

    A module is acceptable if the wrong op or parameter, or its counterpart on the other side, is its own: the innermost
    module, or the parent where the op is a function in the parent's forward. A side that has no such op has the place
    of the op that first reads what is wrong. `also` are kinds that describe the same.
    """

    name: str
    port: str
    kind: str
    modules_left: frozenset[str]
    modules_right: frozenset[str]
    build: Callable[[], Port]
    also: frozenset[str] = frozenset()
    note: str = ""


FAULTS: dict[str, Fault] = {}


def paths(text: str) -> frozenset[str]:
    """Returns the module paths in a text, where a dot alone is the root."""
    return frozenset("" if path == "." else path for path in text.split())


def planted(port: str, kind: str, *, left: str, right: str, also: str = "") -> Callable[[Plant], Plant]:
    """Adds a fault that the function plants into (right, left) of a fresh pair; its docstring says what is wrong."""

    def added(plant: Plant) -> Plant:
        name = plant.__name__

        def build() -> Port:
            pair = PORTS[port]()
            plant(pair.right, pair.left)
            return replace(pair, name=name)

        assert {kind, *also.split()} <= KINDS and name not in FAULTS
        note = (plant.__doc__ or "").strip()
        FAULTS[name] = Fault(name, port, kind, paths(left), paths(right), build, frozenset(also.split()), note)
        return plant

    return added
