"""What an opdiff trace shows: the verdicts, worst first, above what optrace shows of the same step."""

from nbkit.trace import Trace
from nbkit.views.diff_sections import diff_sections
from nbkit.views.sections import Section, op_sections
from nbkit.views.tables_above import with_tables
from nbkit.views.verbs import optrace
from nbkit.views.verbs.view import View


def _sections(trace: Trace, count: int) -> list[Section]:
    return [*diff_sections(trace, count), *op_sections(trace, count)]


VIEW = View(widget=with_tables(diff_sections), sections=_sections, charts=optrace.VIEW.charts)
