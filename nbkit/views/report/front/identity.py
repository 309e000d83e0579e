"""Identity tells whether two traces recorded one step, by what ran in them: what they are called says little.

Verbs see one step differently: optime also the ops that other ops are made of, opfallback its copies, opaudit a module
more. So the fewer kinds of op must be among the more, apart for each phase, inside and outside modules.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from nbkit.analysis.cost.op_totals import has_costs
from nbkit.schema import MODULES, OPS
from nbkit.trace.trace import Trace

# Recordings of one step may differ by a module that one verb sees and another does not; models differ by more.
MOST_APART = 0.2
Modules = frozenset[tuple[str, str]]
# By phase, and whether inside modules: the kinds of op, each with its module.
Kinds = Mapping[tuple[str, bool], frozenset[tuple[str, str]]]
PHASES = ("forward", "backward", "optimizer")
# Backward ops follow from the others; verbs count them in different ways, and some know no modules of compiled ones.
COMPARED = ("forward", "optimizer")
# Autograd's own, of what it saves: some recorders alone see it.
UNCOUNTED = ("aten.detach.default", "aten.detach_.default")
# Of an optimizer what it writes, as its first step alone makes its state.
_IN_PLACE = r"_(?:\.|$)"
# A dropout in eval mode runs nothing: a timeline alone has a row of it.
_DROPOUT = r"aten\.(?:feature_)?(?:alpha_)?dropout\.default"
# What runs a compiled module knows no module in it; opcost runs it as it was before.
_COMPILED = re.compile(r"\.?\b_orig_mod\b.*$")
# Each cell that a step was copied to has another number.
_CELL = re.compile(r"^Cell In\[\d+\], ")


@dataclass(frozen=True)
class Identity:
    """Holds what two traces of one step have in common; `is_part` is true of one that ended early or was filtered."""

    modules: Modules
    params: Mapping[tuple[str, str], int]
    kinds: Kinds
    phases: frozenset[str]
    lines: frozenset[str]
    place: tuple[str | None, frozenset[str]]
    is_part: bool

    def is_of_step(self, other: "Identity") -> bool:
        """Tells whether both are of one step of one model; where too little is known, they are not."""
        is_partial = self.is_part or other.is_part
        return (
            are_alike(self.modules, other.modules)
            and all(other.params.get(module, count) == count for module, count in self.params.items())
            and (is_partial or self.phases == other.phases)
            and _have_same_kinds(self.kinds, other.kinds, is_partial=is_partial)
            # Ops that no module holds are too common to tell.
            and bool(self.modules or self.lines & other.lines)
            and _are_of_one_place(self.place, other.place)
        )


def identity_of(trace: Trace) -> Identity:
    """Returns the identity of a trace, of which that of a graph is empty."""
    ops = trace.frames.get("ops", OPS.frame())
    # A timeline has the calls of modules that only hold others, too.
    computing = ops if not (is_aten := ops["level"] == "aten").any() else ops[is_aten]
    computing = computing.assign(module=computing["module"].str.replace(_COMPILED, "", regex=True))
    is_seen = ~computing["op"].str.fullmatch(_DROPOUT)
    lines = ops["source"].dropna().unique()
    devices = () if has_costs(trace) else trace.meta.get("devices") or ()
    return Identity(
        frozenset(_pairs(computing[is_seen & (computing["phase"] != "backward")], "model", "module")),
        _params(trace.frames.get("modules", MODULES.frame())),
        _kinds(computing),
        frozenset(computing["phase"].unique()) & frozenset(PHASES),
        frozenset(_CELL.sub("", str(line)) for line in lines),
        (trace.meta.get("machine"), frozenset(map(str, devices))),
        not trace.complete or bool(trace.meta.get("filters")),
    )


def are_alike(left: Modules, right: Modules) -> bool:
    """Tells whether both have nearly the same modules."""
    return len(left ^ right) <= max(1, MOST_APART * len(left | right))


def _pairs(frame: pd.DataFrame, first: str, second: str) -> list[tuple[str, str]]:
    pairs = frame[[first, second]].dropna().drop_duplicates()
    return list(zip(pairs[first].astype(str), pairs[second].astype(str), strict=True))


def _params(modules: pd.DataFrame) -> dict[tuple[str, str], int]:
    known = modules.dropna(subset=["model", "module", "params"])
    names = zip(known["model"].astype(str), known["module"].astype(str), strict=True)
    return dict(zip(names, known["params"].astype(int).tolist(), strict=True))


def _kinds(ops: pd.DataFrame) -> Kinds:
    named = ops.assign(is_inside=ops["module"].notna(), module=ops["module"].fillna(""))
    is_counted = named["phase"].isin(COMPARED) & ~named["op"].isin(UNCOUNTED)
    is_counted &= (named["phase"] != "optimizer") | named["op"].str.contains(_IN_PLACE)
    groups = named[is_counted].groupby(["phase", "is_inside"])
    return {(str(phase), bool(inside)): frozenset(_pairs(of, "module", "op")) for (phase, inside), of in groups}


def _have_same_kinds(left: Kinds, right: Kinds, *, is_partial: bool) -> bool:
    groups = left.keys() & right.keys() if is_partial else left.keys() | right.keys()
    pairs = [sorted((left.get(group, frozenset()), right.get(group, frozenset())), key=len) for group in groups]
    return bool(pairs) and all(len(few & many) >= (1 - MOST_APART) * max(len(few), 1) for few, many in pairs)


def _are_of_one_place(left: tuple[str | None, frozenset[str]], right: tuple[str | None, frozenset[str]]) -> bool:
    (left_machine, left_devices), (right_machine, right_devices) = left, right
    is_same = left_machine is None or right_machine is None or left_machine == right_machine
    return is_same and not (left_devices and right_devices and left_devices.isdisjoint(right_devices))
