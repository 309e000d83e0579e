"""The text of a trace: a few lines for a terminal, a log or a screen reader."""

from nbkit.trace.trace import Trace
from nbkit.views.sections.writers import to_text
from nbkit.views.static_html.view import view_of
from nbkit.views.summary.facts import facts

ROWS = 5


def summary(trace: Trace) -> str:
    """Says what ran, how long, where the time went, what was skipped, what recording cost; no trailing newline."""
    known = facts(trace)
    lines = [f"{known.title}: {', '.join(_figure(label, value) for label, value in known.figures)}"]
    lines += [f"INCOMPLETE: {known.incomplete}"] if known.incomplete else []
    # Slow ops first is for the eye that sees all at once; read from the top, the phases give the frame.
    sections = sorted(view_of(trace).sections(trace, ROWS), key=lambda section: section.columns[0].kind != "phase")
    lines += to_text(sections) or [view_of(trace).nothing]
    notes = ["", *known.notes] if known.notes else []
    return "\n".join([*lines, *notes])


def _figure(label: str, value: str) -> str:
    is_count = value.replace(",", "").isdigit()
    return f"{value} {label}" if is_count else f"{label} {value}"
