"""Puts two recorded runs side by side: every aten op of both, how far its values differ, and where that began."""

import json
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

import pandas as pd

from nbkit.divergence.alignment import Call, Pair, aligned
from nbkit.divergence.arguments import in_words, other_arguments
from nbkit.divergence.beginnings import Compared, judged_by_value
from nbkit.divergence.by_value import aligned_by_value, has_other_modules
from nbkit.divergence.columns import action_of, mark_of, tensor_relation
from nbkit.divergence.differing import Ends, Side, sides_of
from nbkit.divergence.distances import NEEDED, distances
from nbkit.divergence.runs import Read, Run, has_values, run_of
from nbkit.divergence.spread import LEEWAY, Spread
from nbkit.errors import OptionError
from nbkit.schema import ALIGNMENT
from nbkit.step.decode import sizes_of
from nbkit.step.step import Step

BEGINNINGS = ("local", "input")
MOST_TIMES = 8
ALONE = {
    "left_only": "only the left run has it",
    "right_only": "only the right run has it",
    "match": "the right run has another op in its place",
}
BY_VALUE = "The two runs have other modules, so ops were aligned by the values that they compute."
OTHER_ARGUMENTS = "its arguments are not the same in both runs"


class Judged(NamedTuple):
    """Holds the ops of two runs side by side, in the order of both, and for each pair the row of ALIGNMENT.

    `compared` has what pairs with an op of each run read and return, by their number.
    """

    pairs: list[Pair]
    rows: list[dict[str, Any]]
    compared: dict[int, Compared]


def side_by_side(left: Run, right: Run) -> pd.DataFrame:
    """Returns a frame of ALIGNMENT: the ops of two runs, in the order of both, and whose the differences are."""
    return ALIGNMENT.frame(judged(left, right).rows)


def judged(left: Run, right: Run) -> Judged:
    """Returns the same as pairs and rows."""
    found = _judged_by_value(left, right) if has_other_modules(left, right) else _judged_by_name(left, right)
    for row in found.rows:
        row["mark"] = mark_of(row["action"], agrees=row.get("error_class") == "clean")
        if row.get("arguments") is not None and row.get("error_class") in BEGINNINGS:
            row["message"] = f"{row['message']}; {in_words(json.loads(row['arguments']))}"
    return found


def _judged_by_value(left: Run, right: Run) -> Judged:
    by_value = aligned_by_value(left, right)
    found = _without_verdicts(left, right, by_value.pairs)
    verdicts = judged_by_value((left, right), by_value, found.rows, found.compared)
    return found._replace(rows=[{**row, **one._asdict()} for row, one in zip(found.rows, verdicts, strict=True)])


def _judged_by_name(left: Run, right: Run) -> Judged:
    """Judges op after op; pairs whose difference comes of other ops and reaches no end of both runs are none."""
    pairs = aligned(left.calls, right.calls)
    sides: list[Side] | None = None
    unfounded: set[int] = set()
    for _ in range(MOST_TIMES):
        found = _without_verdicts(left, right, pairs)
        spread = _follow(left, right, found)
        suspects = spread.culprits.keys() | spread.reorderings.keys() | spread.unread.keys()
        if not suspects | spread.guesses:
            break
        sides = sides or sides_of(left, right)
        founded, apart = _founded(found, spread, Ends(sides, pairs))
        unfounded = suspects - founded
        apart |= {number for number, row in enumerate(found.rows) if _comes_of(number, row, spread) in unfounded}
        apart |= {number for number in (unfounded | spread.guesses) - founded if number in found.compared}
        if not apart:
            break
        pairs = [one for number, pair in enumerate(pairs) for one in (_apart(pair) if number in apart else [pair])]
    _tell(found.rows, spread, unfounded)
    return found


def _founded(found: Judged, spread: Spread, ends: Ends) -> tuple[set[int], set[int]]:
    """Returns the rows of other ops from which a difference comes that is there at an end of both runs.

    With them come the rows that say nothing of a difference: views of what other ops have made, which others read.
    """
    founded, idle = set[int](), set[int]()
    for number, (_, made) in found.compared.items():
        pair, row = found.pairs[number], found.rows[number]
        beginning = number if number in spread.guesses else _comes_of(number, row, spread)
        if beginning is None:
            continue
        assert pair.left is not None and pair.right is not None
        rows = [*zip(pair.left.outputs, pair.right.outputs, strict=False)]
        differ = [both for both, one in zip(rows, made, strict=True) if one.error > LEEWAY * one.eps]
        if any(ends.has(both, row["phase"]) for both in differ):
            founded.add(beginning)
        elif number not in spread.guesses and all(ends.are_views_of_others(both) for both in rows):
            idle.add(number)
    return founded, idle


def _comes_of(number: int, row: Mapping[str, Any], spread: Spread) -> int | None:
    """Returns the row at which the difference of a row began, if that is another."""
    origin = row.get("origin_id")
    beginning = None if origin is None else spread.beginning(origin)
    return None if beginning == number else beginning


def _apart(pair: Pair) -> list[Pair]:
    return [Pair(pair.left, None), Pair(None, pair.right)]


def _without_verdicts(left: Run, right: Run, pairs: list[Pair]) -> Judged:
    compared = _compared(left, right, pairs)
    rows = [_row_of(left, right, pair) for pair in pairs]
    for number, (_, made) in compared.items():
        rows[number]["relation"] = _relation(made[0]) if made else None
    return Judged(pairs, rows, compared)


def _follow(left: Run, right: Run, found: Judged) -> Spread:
    """Adds to the rows what they say of values, op after op."""
    spread = Spread()
    for number, (pair, row) in enumerate(zip(found.pairs, found.rows, strict=True)):
        if number in found.compared:
            ops, is_guess = (row["op"], row["right_op"]), pair.evidence == "structure"
            has_other_arguments = row.get("arguments") is not None
            row |= spread.pair(
                number, ops, *found.compared[number], is_guess=is_guess, has_other_arguments=has_other_arguments
            )._asdict()
            continue
        side, run, call = (0, left, pair.left) if pair.left is not None else (1, right, pair.right)
        assert call is not None
        spread.alone(number, side, row["op"], run.read(call), run.made(call))
    return spread


def _tell(rows: list[dict[str, Any]], spread: Spread, unfounded: Set[int]) -> None:
    """Adds to the rows of ops that are not the same in both runs where a difference begins, but for the unfounded."""
    for number, row in enumerate(rows):
        if _comes_of(number, row, spread) in unfounded:
            row |= {"error_class": None, "origin_id": None, "message": None}
    for number, (what, suspects) in spread.reorderings.items():
        if number not in unfounded:
            message = _reordering(rows, suspects, what)
            rows[number] |= {"error_class": "local", "origin_id": number, "message": message}
    for number, what in {**spread.unread, **spread.culprits}.items():
        if number not in unfounded:
            message = f"{_how(rows[number])}, and {what}"
            rows[number] |= {"error_class": "local", "origin_id": number, "message": message}


def _how(row: dict[str, Any]) -> str:
    """Returns in words how an op is not the same in both runs."""
    return OTHER_ARGUMENTS if row.get("arguments") is not None else ALONE[row["action"]]


def _reordering(rows: list[dict[str, Any]], suspects: list[int], what: str) -> str:
    """Returns why the last of these rows may be where a difference begins that is seen later."""
    last = rows[suspects[-1]]
    other = {"left_only": "right_only", "right_only": "left_only"}.get(last["action"])
    there = next((rows[number]["op"] for number in reversed(suspects) if rows[number]["action"] == other), None)
    instead = f", where the {'left' if other == 'left_only' else 'right'} run has {there}" if there else ""
    return (
        f"{_how(last)}{instead}, and it can change the order of elements, which statistics do not show; the first "
        f"result to differ after it is that of {what}"
    )


def first_beginning(alignment: pd.DataFrame) -> dict[str, Any] | None:
    """Returns the first row at which a difference begins, as data: where it is, what differs; None without one."""
    begins = alignment[alignment["error_class"].isin(BEGINNINGS)]
    if not len(begins):
        return None
    row = begins.iloc[0]
    texts = ("op", "right_op", "module", "phase", "source", "error_class", "message")
    errors = ("input_error", "output_error", "allowed_error")
    return {
        "op_id": None if pd.isna(row["left_id"]) else int(row["left_id"]),
        "right_op_id": None if pd.isna(row["right_id"]) else int(row["right_id"]),
        **{name: row[name] if isinstance(row[name], str) else None for name in texts},
        **{name: None if pd.isna(row[name]) else float(row[name]) for name in errors},
    }


def _compared(left: Run, right: Run, pairs: Sequence[Pair]) -> dict[int, Compared]:
    """Returns what is known of the tensors at equal positions of matched calls, by the number of the pair."""
    ends = {
        number: [(pair.left.inputs, pair.right.inputs), (pair.left.outputs, pair.right.outputs)]
        for number, pair in enumerate(pairs)
        if pair.left is not None and pair.right is not None
    }
    couples = [couple for of_pair in ends.values() for sides in of_pair for couple in zip(*sides, strict=False)]
    tables = [run.table[NEEDED].iloc[[couple[side] for couple in couples]] for side, run in enumerate((left, right))]
    differences = distances(*tables)
    reads = {
        couple: Read(left.tensors[couple[0]], right.tensors[couple[1]], error, what)
        for couple, error, what in zip(couples, differences.error.tolist(), differences.what, strict=True)
    }
    return {
        number: Compared(*([reads[couple] for couple in zip(*sides, strict=False)] for sides in of_pair))
        for number, of_pair in ends.items()
    }


def _row_of(left: Run, right: Run, pair: Pair) -> dict[str, Any]:
    """Returns what a row says of its op, but for the values."""
    left_call, right_call = pair.left, pair.right
    row = _texts(left, left_call) if left_call is not None else _texts(right, right_call)
    if left_call is not None:
        row["left_id"] = left_call.op_id
    if right_call is not None:
        row["right_id"] = right_call.op_id
        row |= {f"right_{name}": right.texts[name][right_call.op_id] for name in ("op", "module", "source")}
    if left_call is not None and right_call is not None and row["op"] == row["right_op"]:
        others = other_arguments(left.arguments[left_call.op_id], right.arguments[right_call.op_id])
        row["arguments"] = json.dumps(others) if others else None
    return {**row, "kind": "op", "action": action_of(left_call, right_call), "evidence": pair.evidence}


def _texts(run: Run, call: Call | None) -> dict[str, Any]:
    assert call is not None
    return {name: values[call.op_id] for name, values in run.texts.items()}


def _relation(made: Read) -> str:
    left, right = made.left, made.right
    if left.shape == right.shape:
        return tensor_relation(None, None, (left.dtype, right.dtype))
    return tensor_relation(sizes_of(left.shape), sizes_of(right.shape), (left.dtype, right.dtype))


def comparable(step: Step, which: str) -> Run:
    """Returns the run that a step holds; errors call it `which`. Raises OptionError if it holds no statistics."""
    if not len(step.ops) or not has_values(step.tensors):
        raise OptionError(
            f"{which} holds no value statistics, so there is nothing to compare; record it with "
            f"nbkit.optrace(values='stats')."
        )
    return run_of(step)


def notes_on(alignment: pd.DataFrame) -> list[str]:
    """Returns sentences that a view of the alignment should show."""
    counts = alignment["action"].value_counts()
    alone = {name: int(counts.get(name, 0)) for name in ("left_only", "right_only")}
    by_value = [BY_VALUE] if (alignment["evidence"] == "values").any() else []
    if not counts.get("match", 0):
        return ["The two runs share no op, so nothing was compared; are they of the same step?"]
    if not any(alone.values()):
        return by_value
    return [
        *by_value,
        f"Ops of the left run only: {alone['left_only']:,}, of the right one only: {alone['right_only']:,}; alignment "
        f"has a row for each.",
    ]
