"""Finds the data that makes a step anomalous: values far from those of a usual step, and their place in the batch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import median

from nbkit.findings.finding import Finding, rule

# Values are unusual from so many times the largest of the usual step on.
OF_USUAL = 20.0
MOST_ROWS = 5
ADVICE = "Look at these samples: their units, their scaling, a fault of the file. Check batches before the step."


@dataclass(frozen=True)
class StepInput:
    """Describes data that an op reads first: largest magnitudes of its rows along the first dimension."""

    op: str
    module: str | None
    source: str | None
    source_text: str | None
    shape: tuple[int, ...]
    largest: tuple[float, ...]


@rule("warning", names=("unusual_batch",))
def unusual_inputs(
    number: int, inputs: Sequence[StepInput], of_usual: int, usual: Sequence[StepInput]
) -> Iterator[Finding]:
    """In a step that stands out, samples of the data hold values 20 times the largest of the step before.

    Each input of step `number` is judged beside that of step `of_usual` in the same place among those of its op and
    line.
    """
    known: dict[tuple[object, ...], list[StepInput]] = {}
    for one in usual:
        known.setdefault((one.op, one.source), []).append(one)
    for one in inputs:
        alike = known.get((one.op, one.source))
        if not alike:
            continue
        before = alike.pop(0)
        most = max(before.largest, default=0.0)
        rows = [row for row, value in enumerate(one.largest) if value >= OF_USUAL * most]
        if most and isfinite(most) and rows:
            yield _finding(number, one, rows, f"step {of_usual} has at most {most:.3g}")


def _finding(number: int, one: StepInput, rows: list[int], usual: str) -> Finding:
    worst = max(one.largest)
    listed = ", ".join(map(str, rows[:MOST_ROWS])) + (" ..." if len(rows) > MOST_ROWS else "")
    samples = f"Sample {listed}" if len(rows) == 1 else f"Samples {listed}"
    holds = "holds" if len(rows) == 1 else "hold"
    others = f"; the median of its samples is {median(one.largest):.3g}" if len(rows) < len(one.largest) else ""
    return unusual_inputs.finding(
        message=f"{samples} of the batch of step {number} (shape {[*one.shape]}) {holds} values up to {worst:.3g}, "
        f"where {usual}{others}",
        advice=ADVICE,
        op=one.op,
        module=one.module,
        source=one.source,
        source_text=one.source_text,
        step=number,
        evidence={"rows": rows, "largest": worst},
    )
