"""The text twin of a trace: a few lines for a terminal, a log or a screen reader."""

from collections.abc import Sequence

from nbkit.trace.trace import Trace
from nbkit.views.sections.section import Section
from nbkit.views.summary import units
from nbkit.views.summary.facts import facts
from nbkit.views.verbs import view_of

ROWS = 5
NAME_WIDTH = 32


def summary(trace: Trace) -> str:
    """What ran, how long, where the time went, what was skipped, what recording cost; no trailing newline."""
    known = facts(trace)
    lines = [f"{known.title}: {', '.join(_figure(label, value) for label, value in known.figures)}"]
    lines += [f"INCOMPLETE: {known.incomplete}"] if known.incomplete else []
    # Slow ops first is for the eye that sees all at once; read from the top, the phases give the frame.
    sections = sorted(view_of(trace).sections(trace, ROWS), key=lambda section: section.noun != "phase")
    lines += [line for section in sections for line in section_lines(section)] or [view_of(trace).nothing]
    notes = ["", *known.notes] if known.notes else []
    return "\n".join([*lines, *notes])


def _figure(label: str, value: str) -> str:
    is_count = value.replace(",", "").isdigit()
    return f"{value} {label}" if is_count else f"{label} {value}"


def section_lines(section: Section) -> list[str]:
    """An empty line, the head and the rows of a table in columns."""
    title = "phase" if section.noun == "phase" else section.title.lower()
    table = [[title, *section.figures], *([text or units.NULL for text in row] for row in section.rows)]
    widths = [max(map(len, texts)) for texts in zip(*table, strict=True)]
    return ["", *(_line(row, [max(widths[0], NAME_WIDTH), *widths[1:]]) for row in table)]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    figures = [text.rjust(max(width, 8)) for text, width in zip(row[1:], widths[1:], strict=True)]
    return "  ".join([row[0].ljust(widths[0]), *figures])
