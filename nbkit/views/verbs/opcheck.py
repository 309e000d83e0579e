"""What an opcheck trace shows: where values go wrong first, then what an optrace trace shows."""

from nbkit.trace.trace import Trace
from nbkit.views.sections.check import check_sections
from nbkit.views.sections.section import Section, op_sections
from nbkit.views.sections.writers import to_widget
from nbkit.views.summary.verdict import check_verdict
from nbkit.views.verbs import optrace
from nbkit.views.verbs.view import View


def _sections(trace: Trace, count: int) -> list[Section]:
    return [*check_sections(trace, count), *op_sections(trace, count)]


VIEW = View(
    widget=to_widget(check_sections),
    sections=_sections,
    charts=optrace.VIEW.charts,
    verdict=check_verdict,
    found=check_sections,
)
