"""The text of a trace, for a terminal, a log or a screen reader: its brief, its figures, its tables."""

from nbkit.trace.once import one_view
from nbkit.trace.trace import Trace
from nbkit.views.brief.brief import brief_of
from nbkit.views.brief.text import brief_lines
from nbkit.views.sections.writers import text_width, to_text
from nbkit.views.static_html.view import view_of
from nbkit.views.summary.facts import facts, figure_text

ROWS = 5


@one_view()
def summary(trace: Trace) -> str:
    """Says the verdict and the first findings, what ran, where the time went, what was skipped; no trailing newline."""
    known = facts(trace)
    lines = [f"INCOMPLETE: {known.incomplete}", ""] if known.incomplete else []
    lines += brief_lines(brief_of(trace), ROWS, text_width())
    lines += [f"{known.title}: {', '.join(figure_text(*figure) for figure in known.figures)}"]
    # Slow ops first is for the eye that sees all at once; read from the top, the phases give the frame.
    sections = sorted(view_of(trace).sections(trace, ROWS), key=lambda section: section.columns[0].kind != "phase")
    lines += to_text(sections) or [view_of(trace).nothing] * view_of(trace).is_empty(trace)
    notes = ["", *known.notes] if known.notes else []
    return "\n".join([*lines, *notes])
