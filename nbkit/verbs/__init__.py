"""The verbs that record: their options as text, for the cell magics and the command line alike."""

from nbkit.trace.trace import Trace
from nbkit.verbs.opcheck import OPCHECK
from nbkit.verbs.opdiff import OPDIFF
from nbkit.verbs.optime import OPTIME
from nbkit.verbs.optrace import OPTRACE
from nbkit.verbs.verb import Verb

# A new verb joins by its own file and one entry here.
VERBS: dict[str, Verb] = {verb.name: verb for verb in (OPTRACE, OPTIME, OPDIFF, OPCHECK)}


def has_findings(trace: Trace) -> bool:
    """Whether the verb that made the trace found something wrong; False if it judges nothing or is not known."""
    verb = VERBS.get(str(trace.meta.get("verb")))
    return verb is not None and verb.findings(trace) > 0
