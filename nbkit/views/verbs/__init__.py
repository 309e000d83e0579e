"""What each verb's traces show."""

from nbkit.trace.trace import Trace
from nbkit.views.verbs import opcheck, opdiff, opgraph, optime, optrace
from nbkit.views.verbs.view import View

VIEWS = {
    "optrace": optrace.VIEW,
    "optime": optime.VIEW,
    "opdiff": opdiff.VIEW,
    "opcheck": opcheck.VIEW,
    "opgraph": opgraph.VIEW,
}


def view_of(trace: Trace) -> View:
    """The view of the verb that made the trace; traces of ops by anything else are shown as optrace's are."""
    return VIEWS.get(str(trace.meta.get("verb")), optrace.VIEW)
