"""Scores opalign on all cases: `python -m tests.align_cases.score [SECTION [NAME...]]`.

Sections are ports, faults, onnx, eager, planted and planted-exported; `all` is every one. Names choose the cases that
have one of them in theirs.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from tests.align_cases.faults import FAULTS
from tests.align_cases.ports import PORTS

# Results of the right side that the published method pairs rightly, of those that onnxruntime's model has.
PUBLISHED = {"attention": "14/40", "decoder": "35/61", "model": "33/64"}
CERTAIN = "="


@dataclass(frozen=True)
class Line:
    """Holds a row of the table: whether the place and the kind were right is null where nothing is to be said."""

    name: str
    claimed: str
    place: str
    place_right: bool
    kind: str = ""
    kind_right: bool | None = None
    seconds: float = 0.0

    def text(self) -> str:
        kind_right = {None: "", True: "right", False: "WRONG"}[self.kind_right]
        place_right = "right" if self.place_right else "WRONG"
        return (
            f"{self.name:<40.40} {self.seconds:6.2f} s  {self.claimed:<15.15} "
            f"{kind_right:<5} {self.kind:<40.40} {place_right} {self.place}"
        )


class Aligned:
    """Holds the trace of two runs that were aligned, and how long that took with both runs."""

    def __init__(self, left: Any, right: Any, inputs: Any) -> None:
        import nbkit

        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.trace = nbkit.opalign(left, right, inputs=inputs)
        self.seconds = time.perf_counter() - start
        self.first = self.trace.meta["first_divergence"]
        self.kind = (self.first or {}).get("kind") or "none"

    @property
    def matched(self) -> Any:
        alignment = self.trace.alignment
        return alignment[alignment["action"] == "match"]

    @property
    def claims(self) -> str:
        """Returns how many pairs are said not to agree, and how many of them to begin there."""
        matched = self.matched
        local = matched["error_class"].isin(["local", "both"]).sum()
        return f"{(matched['mark'] == '~').sum()} ~, {local} local"


def sides(first: dict[str, Any] | None, key: str) -> dict[str, str]:
    """Returns a field of the first divergence for each side that it names; the root module is the empty path."""
    named = {side: first[side] for side in ("left", "right") if first.get(side)} if first else {}
    return {side: value.get(key) or "" for side, value in named.items()}


def acceptable(first: dict[str, Any] | None, key: str, left: AbstractSet[str], right: AbstractSet[str]) -> bool:
    """Whether a first divergence is claimed, and what it names of each side is one of that side's places."""
    found = sides(first, key)
    return bool(found) and all(value in {"left": left, "right": right}[side] for side, value in found.items())


def described(first: dict[str, Any] | None) -> str:
    """Returns module and op of each side that the first divergence names."""
    if first is None:
        return "none"
    modules, ops = sides(first, "module"), sides(first, "op")
    return " | ".join(f"{side}: {modules[side] or '(root)'} {ops[side].removeprefix('aten.')}" for side in modules)


def kind_text(kind: str, right: bool, wanted: str) -> str:
    return kind if right else f"{kind}, not {wanted}"


def port_line(name: str) -> Line:
    port = PORTS[name]()
    found = Aligned(port.left, port.right, port.inputs)
    kind = "" if found.first is None else found.kind
    return Line(name, found.claims, described(found.first), found.first is None, kind, seconds=found.seconds)


def fault_line(name: str) -> Line:
    fault = FAULTS[name]
    port = fault.build()
    found = Aligned(port.left, port.right, port.inputs)
    right = acceptable(found.first, "module", fault.modules_left, fault.modules_right)
    place = described(found.first)
    if not right:
        place += f"; not {sorted(fault.modules_left)} | {sorted(fault.modules_right)}"
    wanted = {fault.kind, *fault.also}
    kind_right = found.kind in wanted
    kind = kind_text(found.kind, kind_right, fault.kind)
    return Line(name, found.claims, place, right, kind, kind_right, found.seconds)


def planted_line(case: Any, kinds: AbstractSet[str]) -> Line:
    found = Aligned(case.model_left, case.model_right, case.inputs)
    right = acceptable(found.first, "name", case.places_left, case.places_right)
    place = " | ".join(sides(found.first, "name").values()) or "none"
    place = place if right else f"{place}; not {sorted(case.places_left)} | {sorted(case.places_right)}"
    kind_right = found.kind in kinds
    kind = kind_text(found.kind, kind_right, min(kinds))
    return Line(case.name, found.claims, place, right, kind, kind_right, found.seconds)


def onnx_line(case: Any, wanted: dict[str, set[str]]) -> Line:
    """Counts the right results whose pairs are right; a part of a result, or one that holds it, is not judged."""
    found = Aligned(case.left, case.right, case.inputs)
    names = found.trace.frames["results"].set_index("result_id")["name"]
    right, wrong, certain = set(), set(), set()
    columns = (found.matched[column] for column in ("left_id", "right_id", "relation", "mark"))
    for left_id, right_id, relation, mark in zip(*columns, strict=True):
        name = names[right_id]
        if name in wanted and relation not in ("slice", "concat"):
            good = names[left_id] in wanted[name]
            (right if good else wrong).add(name)
            certain |= {name} if not good and mark == CERTAIN else set()
    possible = sum(map(bool, wanted.values()))
    published = PUBLISHED[case.name.split("-")[0]] if "optimised-onnxruntime" in case.name else "-"
    place = f"{len(right - wrong)}/{possible} of {len(wanted)}, wrong {sorted(wrong)}, published {published}"
    good = len(right - wrong) == possible and not certain
    return Line(case.name, found.claims, place, good, seconds=found.seconds)


def eager_line(name: str, module: Any, model: Any, inputs: Any, values: Any, *, is_plain: bool) -> Line:
    """Counts the aten results that have a partner, of those that the model should have, and names wrong partners.

    Those are the results that its outputs depend on where the model is exported as it is (`is_plain`), else those whose
    values it has. The others have to be explained: an exporter computes masks and tables beforehand.
    """
    found = Aligned(module, model, inputs)
    results = found.trace.frames["results"]
    left = results[(results["side"] == "left") & (results["kind"] == "op")].set_index("result_id")
    alignment = found.trace.alignment
    alone = alignment[(alignment["action"] == "left_only") & alignment["left_id"].isin(left.index)]
    paired = found.matched[found.matched["left_id"].isin(left.index)]
    names = results.set_index("result_id")["name"]
    whole = paired[~paired["relation"].isin(["slice", "concat"])]
    wrong = {
        names[right_id]
        for left_id, right_id in zip(whole["left_id"], whole["right_id"], strict=True)
        if not same_extremes(left.loc[left_id], values.get(names[right_id]))
    }
    there = read_by_outputs(left) if is_plain else in_both(module, inputs, values)
    ids, explained = set(paired["left_id"]), alone["relation"].notna().sum()
    share = len(ids & there) / max(len(there), 1)
    text = (
        f"{share:.1%} of {len(there)} aten results paired that the model should have ({len(ids)} of all {len(left)}), "
        f"{explained} of the {len(alone)} others explained, wrong {sorted(wrong)}"
    )
    good = share >= 0.95 and explained == len(alone) and not wrong and found.first is None
    return Line(name, found.claims, text, good, seconds=found.seconds)


def read_by_outputs(results: pd.DataFrame) -> set[int]:
    """Returns the result_ids of those that an output of the model depends on."""
    waiting, found = list(results.index[results["is_output"]]), set()
    while waiting:
        if (one := waiting.pop()) in results.index and one not in found:
            found.add(one)
            waiting += json.loads(results.at[one, "reads"])
    return found


def in_both(module: Any, inputs: Any, values: Any) -> set[int]:
    """Returns the result_ids of the aten results whose values the model has somewhere, by brute force."""
    from nbkit.verbs.alignment.sides import execution_of
    from tests.align_cases.onnx_pairs import truth

    run = execution_of(module, inputs, backward=False, kept_bytes=1 << 30)
    wanted = {str(one.result_id): run.value(one.result_id) for one in run.results if one.kind == "op"}
    return {int(number) for number, others in truth(values, wanted).items() if others}


def same_extremes(row: Any, value: np.ndarray | None) -> bool:
    """Whether smallest and largest element are those of a row of results; true of what is no array of floats."""
    if value is None or value.dtype.kind != "f":
        return True
    return bool(np.allclose([row["min"], row["max"]], [value.min(), value.max()], rtol=1e-3, atol=1e-5))


Cases = Iterable[tuple[str, Callable[[], Line]]]


def ports(chosen: Callable[[str], bool]) -> Cases:
    return ((name, partial(port_line, name)) for name in PORTS if chosen(name))


def faults(chosen: Callable[[str], bool]) -> Cases:
    return ((name, partial(fault_line, name)) for name in FAULTS if chosen(name))


def onnx(chosen: Callable[[str], bool]) -> Iterator[tuple[str, Callable[[], Line]]]:
    from tests.align_cases.onnx_models import PARTS, constants_of, inputs_of, results_of
    from tests.align_cases.onnx_pairs import LENGTHS, MAKERS, pair, truth

    for length in LENGTHS:
        for part in PARTS:
            for makers in MAKERS:
                if chosen(f"{part}-{length}-{makers}"):
                    case, inputs = pair(part, length, makers), inputs_of(part, length)
                    left = {**inputs, **constants_of(case.left), **results_of(case.left, inputs)}
                    wanted = truth(left, results_of(case.right, inputs))
                    yield case.name, partial(onnx_line, case, wanted)


def eager(chosen: Callable[[str], bool]) -> Iterator[tuple[str, Callable[[], Line]]]:
    from tests.align_cases.onnx_models import (
        PARTS,
        constants_of,
        exported,
        optimised,
        results_of,
        torch_inputs,
        torch_part,
    )

    for part in PARTS:
        models = {
            "plain": partial(exported, part, 64, False),
            "exported": partial(exported, part, 64, True),
            "onnxruntime": partial(optimised, part, 64),
        }
        for name, model in models.items():
            if chosen(f"{part}-eager-{name}"):
                inputs = torch_inputs(part, 64)
                given = {key: value.numpy() for key, value in inputs.items()}
                values = {**given, **constants_of(model()), **results_of(model(), given)}
                case = f"{part}-eager-{name}"
                yield (
                    case,
                    partial(eager_line, case, torch_part(part), model(), inputs, values, is_plain=name == "plain"),
                )


def planted(chosen: Callable[[str], bool], against: str = "itself") -> Iterator[tuple[str, Callable[[], Line]]]:
    from tests.align_cases.planted_onnx import KINDS, planted

    for case in planted(against):
        if chosen(case.name):
            yield case.name, partial(planted_line, case, KINDS[case.kind])


SECTIONS: dict[str, Callable[[Callable[[str], bool]], Cases]] = {
    "ports": ports,
    "faults": faults,
    "onnx": onnx,
    "eager": eager,
    "planted": planted,
    "planted-exported": partial(planted, against="exported"),
}


def judged(name: str, judge: Callable[[], Line]) -> Line:
    try:
        return judge()
    except Exception as error:  # an engine that fails on one case is scored on the others
        return Line(name, "failed", f"{type(error).__name__}: {error}".replace("\n", " "), False)


def main(arguments: list[str]) -> None:
    section, *parts = arguments or ["all"]
    if section != "all" and section not in SECTIONS:
        raise SystemExit(f"{section!r} is no section; there are all, {', '.join(SECTIONS)}.")
    import nbkit

    if not hasattr(nbkit, "opalign"):
        raise SystemExit("This nbkit has no opalign to score.")
    for name in SECTIONS if section == "all" else [section]:
        print(f"\n{name}: case, time with both runs, pairs that differ, kind, first divergence")
        lines = []
        for case, judge in SECTIONS[name](lambda case: not parts or any(part in case for part in parts)):
            lines.append(judged(case, judge))
            print(lines[-1].text(), flush=True)
        kinds = [line.kind_right for line in lines if line.kind_right is not None]
        right = f"{sum(line.place_right for line in lines)} of {len(lines)} right"
        print(f"{name}: {right}" + (f", kind of {sum(kinds)} of {len(kinds)} right" if kinds else ""))


if __name__ == "__main__":
    main(sys.argv[1:])
