"""Chapter: one trace of a report, with its place in the page, what is said of it, and its HTML."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape

from nbkit.trace.trace import Trace
from nbkit.views.brief.brief import Brief, brief_of, counted
from nbkit.views.brief.html import brief_html
from nbkit.views.panels.panel import Contents, panel_html
from nbkit.views.plots.figures import Figure
from nbkit.views.report.summary import summary_statements
from nbkit.views.sections.writers import to_html
from nbkit.views.statements.statement import Statement, statements_html
from nbkit.views.static_html.figure_svg import figure_svg
from nbkit.views.static_html.static_table import nothing_html
from nbkit.views.static_html.view import view_of
from nbkit.views.summary.facts import facts

ROWS = 20
# Inches from which on a figure would be too small beside another one.
WIDE = 8.0


@dataclass(frozen=True)
class Chapter:
    """A trace; ids in its part of the page begin with `anchor`. What is said of it is worked out when asked for."""

    contents: Contents
    anchor: str
    numbered: str

    @cached_property
    def title(self) -> str:
        return f"{self.numbered}{facts(self.contents.trace).title}"

    @cached_property
    def brief(self) -> Brief:
        return brief_of(self.contents.trace)

    @property
    def answers(self) -> list[Statement]:
        """Returns the statements for the first screen."""
        return [one for one in self._said if one.is_first]

    @property
    def statements(self) -> list[Statement]:
        """Returns the statements for the trace's own section."""
        return [one for one in self._said if not one.is_first]

    @cached_property
    def _said(self) -> list[Statement]:
        """Returns all statements; there are none without rows to show."""
        trace = self.contents.trace
        return [] if view_of(trace).is_empty(trace) else summary_statements(trace, self.contents.base)


def chapters(traces: Sequence[Contents]) -> list[Chapter]:
    """Returns a chapter for each; titles of several are numbered, so that two of the same run can be told apart."""
    return [
        Chapter(contents, f"t{number}", f"{number}. " if len(traces) > 1 else "")
        for number, contents in enumerate(traces, 1)
    ]


def trace_section(chapter: Chapter, on_top: set[int], *, has_heading: bool) -> str:
    """Writes the HTML of a trace without the findings of these ids; a single one has its heading from the page."""
    head = f"<h2>{escape(chapter.title)}</h2>" if has_heading else ""
    return f'<section class="nbkit-trace" id="{chapter.anchor}">{head}{_inside(chapter, on_top)}</section>'


def _inside(chapter: Chapter, on_top: set[int]) -> str:
    contents, anchor, trace = chapter.contents, chapter.anchor, chapter.contents.trace
    view = view_of(trace)
    if view.is_empty(trace):
        reason = facts(trace).incomplete
        return nothing_html(trace) + (f"<p>{escape(reason)}</p>" if reason else "")
    panels = "".join(panel_html(panel, anchor) for panel in view.panels(contents))
    # A chart of actual against expected values would show them.
    drawn = trace if contents.values or not trace.captured else Trace(trace.frames, trace.meta)
    charts = "".join(_chart(figure, f"{anchor}-chart{number}-") for number, figure in enumerate(view.charts(drawn), 1))
    return (
        brief_html(_rest_of(chapter, on_top), ROWS, anchor)
        + statements_html(chapter.statements, anchor)
        + _tables(to_html(view.outcome(trace, ROWS)), f"{anchor}-found", "What was found", chapter.title)
        + view.drawing(trace)
        + panels
        + _tables(to_html(view.totals(trace, ROWS)), f"{anchor}-totals", "Totals", chapter.title)
        + f'<div class="charts">{charts}</div>'
    )


def _rest_of(chapter: Chapter, on_top: set[int]) -> Brief:
    """Returns the brief without what is said elsewhere: the worst findings, statements, what nobody has looked at."""
    brief = chapter.brief
    rest = tuple(entry for entry in brief.entries if id(entry) not in on_top)
    said = [words for part in (*chapter.answers, *chapter.statements) for words in part.sentences]
    verdict = tuple(words for words in brief.verdict if words not in [*counted(brief.entries), *said])
    return replace(brief, verdict=(*verdict, *counted(rest)), entries=rest, missing=(), incomplete=None)


def _tables(html: str, anchor: str, heading: str, title: str) -> str:
    """Writes tables below a heading; they scroll where room is short, by keys, too."""
    if not html:
        return ""
    name = escape(f"{heading}: {title}")
    area = f'<div class="nbkit-static" role="region" tabindex="0" aria-label="{name}">{html}</div>'
    return f'<section id="{anchor}"><h3>{heading}</h3>{area}</section>'


def _chart(figure: "Figure", prefix: str) -> str:
    """Writes a figure as inline SVG; a wide one gets a line of its own."""
    kind = ' class="wide"' if figure.get_figwidth() > WIDE else ""
    return f"<figure{kind}>{figure_svg(figure, prefix)}</figure>"
