"""Scores opalign on all cases: `python -m tests.align_cases.score [SECTION [NAME...]]`.

Sections are ports, faults, onnx, planted and planted-exported; `all` is every one. Names choose the cases that have one
of them in theirs.
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

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
            f"{self.name:<40.40} {self.claimed:<16.16} {place_right:<5} {self.place:<76.76} "
            f"{kind_right:<5} {self.kind:<22.22} {self.seconds:6.2f} s"
        )


def opalign(left: Any, right: Any, inputs: Any) -> Any:
    import nbkit

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nbkit.opalign(left, right, inputs=inputs)


def sides(first: dict[str, Any] | None, key: str) -> dict[str, str]:
    """Returns a field of the first divergence for each side that it names; the root module is the empty path."""
    named = {side: first[side] for side in ("left", "right") if first.get(side)} if first else {}
    return {side: value.get(key) or "" for side, value in named.items()}


def claims(trace: Any) -> str:
    """Returns how many pairs are said not to agree, and how many of them to begin there."""
    alignment = trace.alignment
    matched = alignment[alignment["action"] == "match"]
    local = matched["error_class"].isin(["local", "both"]).sum()
    return f"{(matched['mark'] == '~').sum()} ~, {local} local"


def port_line(name: str) -> Line:
    port = PORTS[name]()
    trace = opalign(port.left, port.right, port.inputs)
    first = trace.meta["first_divergence"]
    place = "none" if first is None else described(first)
    return Line(name, claims(trace), place, first is None, kind=(first or {}).get("kind") or "")


def fault_line(name: str) -> Line:
    fault = FAULTS[name]
    port = fault.build()
    trace = opalign(port.left, port.right, port.inputs)
    first = trace.meta["first_divergence"]
    modules = sides(first, "module")
    allowed = {"left": fault.modules_left, "right": fault.modules_right}
    right = bool(modules) and all(module in allowed[side] for side, module in modules.items())
    kind = (first or {}).get("kind") or "none"
    wanted = {fault.kind, *fault.also}
    text = described(first) if right else f"{described(first)}, not {allowed['right'] and sorted(allowed['right'])}"
    return Line(name, claims(trace), text, right, kind_text(kind, wanted), kind in wanted)


def kind_text(kind: str, wanted: set[str]) -> str:
    return kind if kind in wanted else f"{kind}, not {min(wanted)}"


def described(first: dict[str, Any] | None) -> str:
    """Returns module and op of each side that the first divergence names."""
    if first is None:
        return "none"
    modules, ops = sides(first, "module"), sides(first, "op")
    return " | ".join(f"{modules[side] or '(root)'} {ops[side].removeprefix('aten.')}" for side in modules)


def planted_line(case: Any, kinds: set[str]) -> Line:
    trace = opalign(case.model_left, case.model_right, case.inputs)
    first = trace.meta["first_divergence"]
    names = sides(first, "name")
    right = bool(names) and all(name in case.places for name in names.values())
    kind = (first or {}).get("kind") or "none"
    place = " | ".join(names.values()) or "none"
    text = place if right else f"{place}, not {sorted(case.places)}"
    return Line(case.name, claims(trace), text, right, kind_text(kind, kinds), kind in kinds)


def onnx_line(case: Any, wanted: dict[str, set[str]]) -> Line:
    """Counts the right results whose pairs are right; a part of a result, or one that holds it, is not judged."""
    trace = opalign(case.left, case.right, case.inputs)
    pairs = trace.alignment[trace.alignment["action"] == "match"]
    names = trace.frames["results"].set_index("result_id")["name"]
    right, wrong, certain = set(), set(), set()
    for left_id, right_id, relation, mark in zip(
        pairs["left_id"], pairs["right_id"], pairs["relation"], pairs["mark"], strict=True
    ):
        name = names[right_id]
        if name in wanted and relation not in ("slice", "concat"):
            good = names[left_id] in wanted[name]
            (right if good else wrong).add(name)
            certain |= {name} if not good and mark == CERTAIN else set()
    possible = sum(map(bool, wanted.values()))
    published = PUBLISHED[case.name.split("-")[0]] if "optimised-onnxruntime" in case.name else "-"
    place = f"{len(right - wrong)}/{possible} of {len(wanted)}, wrong {sorted(wrong)}, published {published}"
    return Line(case.name, claims(trace), place, len(right - wrong) == possible and not certain)


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


def planted(chosen: Callable[[str], bool], against: str = "itself") -> Iterator[tuple[str, Callable[[], Line]]]:
    from tests.align_cases.planted_onnx import KINDS, planted

    for case in planted(against):
        if chosen(case.name):
            yield case.name, partial(planted_line, case, KINDS[case.kind])


SECTIONS: dict[str, Callable[[Callable[[str], bool]], Cases]] = {
    "ports": ports,
    "faults": faults,
    "onnx": onnx,
    "planted": planted,
    "planted-exported": partial(planted, against="exported"),
}


def judged(name: str, judge: Callable[[], Line]) -> Line:
    start = time.perf_counter()
    try:
        line = judge()
    except Exception as error:  # an engine that fails on one case is scored on the others
        line = Line(name, "failed", f"{type(error).__name__}: {error}".replace("\n", " "), False)
    return Line(**{**vars(line), "seconds": time.perf_counter() - start})


def main(arguments: list[str]) -> None:
    section, *parts = arguments or ["all"]
    if section != "all" and section not in SECTIONS:
        raise SystemExit(f"{section!r} is no section; there are all, {', '.join(SECTIONS)}.")
    for name in SECTIONS if section == "all" else [section]:
        print(f"\n{name}: case, pairs that differ, first divergence (left | right), its kind, time with both runs")
        lines = []
        for case, judge in SECTIONS[name](lambda case: not parts or any(part in case for part in parts)):
            lines.append(judged(case, judge))
            print(lines[-1].text(), flush=True)
        kinds = [line.kind_right for line in lines if line.kind_right is not None]
        right = f"{sum(line.place_right for line in lines)} of {len(lines)} right"
        print(f"{name}: {right}" + (f", kind of {sum(kinds)} of {len(kinds)} right" if kinds else ""))


if __name__ == "__main__":
    main(sys.argv[1:])
