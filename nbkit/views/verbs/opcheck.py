"""What an opcheck trace shows: where values go wrong first, then what an optrace trace shows."""

from nbkit.views.check_sections import check_sections
from nbkit.views.verbs import optrace
from nbkit.views.verbs.view import View

VIEW = View(widget=optrace.VIEW.widget, sections=check_sections, charts=optrace.VIEW.charts)
