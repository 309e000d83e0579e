"""The static view of a trace: one piece of HTML without scripts that survives where no widget can."""

from dataclasses import replace

from nbkit.trace.trace import Trace
from nbkit.views.brief.brief import brief_of
from nbkit.views.brief.html import brief_html
from nbkit.views.sections.writers import to_html
from nbkit.views.static_html.style import facts_html, static_div
from nbkit.views.static_html.view import view_of
from nbkit.views.summary.facts import facts

# Rows of each table of totals, and of the table of single calls.
SLOWEST, CALLS = 10, 20
FINDINGS = 10


def static_table(trace: Trace) -> str:
    """Writes HTML of brief, facts, a picture if the verb has one, totals and single calls; every name escaped."""
    view, known = view_of(trace), replace(facts(trace), incomplete=None)
    head = brief_html(brief_of(trace), FINDINGS) + facts_html(known)
    more = nothing_html(trace)
    if not view.is_empty(trace):
        more = view.picture(trace) + totals_tables(trace, SLOWEST) + view.calls(trace, CALLS)
    return static_div(head + more)


def nothing_html(trace: Trace) -> str:
    """Says what stands in place of the tables of a trace without rows."""
    return f"<p>{view_of(trace).nothing}</p>"


def totals_tables(trace: Trace, count: int) -> str:
    """Writes HTML of the totals, `count` rows at most in each table."""
    return to_html(view_of(trace).sections(trace, count))
