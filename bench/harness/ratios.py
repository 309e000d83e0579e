"""The maths and the text of the tables: ratios of interleaved samples, verdicts against budgets, Markdown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from bench.harness.measure import Measurements, Reading, Sample

Part = Callable[[Sample], Reading]


@dataclass(frozen=True)
class Figure:
    """One measured figure on both clocks, and the budget it has, if any."""

    what: str
    wall: float
    cpu: float
    unit: str
    budget: float | None = None


def ratio(numerator: Sequence[float], denominator: Sequence[float]) -> float:
    """Returns median of the ratios of each round: what slows a whole round down stands on both sides."""
    return median(above / below for above, below in zip(numerator, denominator, strict=True))


def compare(measured: Measurements, peer: str, base: str, parts: tuple[Part, Part]) -> Reading | None:
    """Returns ratio of a part of `peer` to a part of `base`, on both clocks; None if one of them failed."""
    if not {peer, base} <= measured.samples.keys():
        return None
    above = [parts[0](sample) for sample in measured.samples[peer]]
    below = [parts[1](sample) for sample in measured.samples[base]]
    return Reading(
        ratio([span.wall_us for span in above], [span.wall_us for span in below]),
        ratio([span.cpu_us for span in above], [span.cpu_us for span in below]),
    )


def middle(spans: Sequence[Reading]) -> Reading:
    """Returns median on each clock."""
    return Reading(median(span.wall_us for span in spans), median(span.cpu_us for span in spans))


def verdict(value: float, budget: float | None) -> str:
    """Returns whether a figure is within its budget, and by how much it is not."""
    if budget is None:
        return "no budget"
    if value <= budget:
        return "met"
    return f"missed by {value / budget - 1:.0%}"


def number(value: float) -> str:
    """Returns three significant digits, without an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def figures_table(figures: Sequence[Figure]) -> str:
    """Returns markdown table of figures; the verdict is that of the wall clock."""
    rows = [
        (
            figure.what,
            "" if figure.budget is None else f"<= {figure.budget:g} {figure.unit}",
            f"{number(figure.wall)} {figure.unit}",
            f"{number(figure.cpu)} {figure.unit}",
            verdict(figure.wall, figure.budget),
        )
        for figure in figures
    ]
    return markdown(("what", "budget", "wall", "CPU of the thread", "verdict"), rows)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns markdown table whose columns also line up as plain text; all but the first are set to the right."""
    table = [tuple(head), *(tuple(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    rule = "|" + "|".join(["-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:])]) + "|"
    lines = []
    for row in table:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([lines[0], rule, *lines[1:]])
