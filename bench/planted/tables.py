"""Writes the fault benchmark: totals, a table of every model and dtype, wrong verdicts by name."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bench.harness.ratios import markdown, number
from bench.planted.runs import BOUND, KINDS, Outcome

Place = tuple[str, str]  # model, dtype


class Clean(NamedTuple):
    """A step without a fault."""

    tensors: int  # compared
    noise_ratio: float  # the largest
    wrong: tuple[str, ...]  # ops called wrong


def detectable(results: dict[Place, list[Outcome]]) -> list[Outcome]:
    """Returns the faults that the device calls large enough."""
    return [outcome for outcomes in results.values() for outcome in outcomes if outcome.kind == "detectable"]


def share(outcomes: Sequence[Outcome]) -> float:
    """Returns how many of them are the first and only mismatch; 0 of none."""
    return sum(outcome.localised for outcome in outcomes) / max(len(outcomes), 1)


def totals(results: dict[Place, list[Outcome]], clean: dict[Place, Clean]) -> str:
    """Returns one row per class of faults, and one for the clean steps."""
    every = [outcome for outcomes in results.values() for outcome in outcomes]
    rows = []
    for kind in KINDS:
        ones = [outcome for outcome in every if outcome.kind == kind]
        alone = sum(outcome.localised for outcome in ones)
        blamed = sum(bool(outcome.others) for outcome in ones)
        rows.append((kind, str(len(ones)), str(alone), str(sum(not outcome.found for outcome in ones)), str(blamed)))
    head = ("faults", "planted", "first and only mismatch", "not found", "another op blamed")
    kinds = {(outcome.fault.op, outcome.fault.kind) for outcome in detectable(results)}
    alarms = sum(bool(one.wrong) for one in clean.values())
    return "\n\n".join([
        markdown(head, rows),
        f"Of the detectable ones {share(detectable(results)):.2%} are the first and only mismatch; they are "
        f"{len(kinds)} pairs of op and kind, {len({op for op, _ in kinds})} ops. Of {len(clean)} clean steps with "
        f"{sum(one.tensors for one in clean.values()):,} compared tensors {alarms} have a mismatch.",
    ])  # fmt: skip


def table_of(outcomes: Sequence[Outcome]) -> str:
    """Writes a row per kind of fault and phase of one model and dtype."""
    rows = []
    for kind, phase in sorted({(outcome.fault.kind, outcome.phase) for outcome in outcomes}):
        ones = [outcome for outcome in outcomes if (outcome.fault.kind, outcome.phase) == (kind, phase)]
        large = [outcome for outcome in ones if outcome.kind == "detectable"]
        counts = [str(sum(outcome.kind == name for outcome in ones)) for name in KINDS[1:]]
        least = number(min(outcome.noise_ratio for outcome in large)) if large else ""
        rows.append((kind, phase, str(len({outcome.fault.op for outcome in ones})), str(len(large)),
                     str(sum(outcome.localised for outcome in large)), least, *counts))  # fmt: skip
    head = ("kind", "phase", "ops", "detectable", "found alone", "least noise ratio", *KINDS[1:])
    return markdown(head, rows)


def clean_table(clean: dict[Place, Clean]) -> str:
    """Returns steps without a fault."""
    rows = [
        (model, dtype, str(one.tensors), number(one.noise_ratio), ", ".join(one.wrong) or "none")
        for (model, dtype), one in clean.items()
    ]
    return markdown(("model", "dtype", "compared tensors", "largest noise ratio", "mismatches"), rows)


def wrong_verdicts(results: dict[Place, list[Outcome]]) -> list[str]:
    """Lists the faults that were missed though detectable, and those for which another op was blamed."""
    return list(_lines(results, [outcome for ones in results.values() for outcome in ones if outcome.is_wrong]))


def undetectable(results: dict[Place, list[Outcome]]) -> list[str]:
    """Returns a line for every fault that is not detectable, with the figure that says so, the largest first."""
    ones = [outcome for outcomes in results.values() for outcome in outcomes if not outcome.rounding_ratio > BOUND]
    return list(_lines(results, sorted(ones, key=lambda outcome: -outcome.rounding_ratio)))


def _lines(results: dict[Place, list[Outcome]], chosen: Sequence[Outcome]) -> Iterator[str]:
    places = {id(outcome): place for place, outcomes in results.items() for outcome in outcomes}
    for outcome in chosen:
        fault, (model, dtype) = outcome.fault, places[id(outcome)]
        size = "" if fault.size is None else f" {fault.size:g}"
        verdict = "found" if outcome.found else "not found"
        blamed = f", blamed: {', '.join(outcome.others)}" if outcome.others else ""
        yield (
            f"{model} {dtype}, {fault.op} call {fault.nth_call}, {fault.kind}{size}: moved {outcome.rounding_ratio:.3g}"
            f" times what rounding allows, noise ratio {outcome.noise_ratio:.3g}, {verdict}{blamed}"
        )
