"""VERBS lists the verbs; importing it tells the views what each one's traces show."""

from nbkit.findings.finding import wrong
from nbkit.trace.job.job import VERB as RANKS
from nbkit.trace.trace import Trace
from nbkit.verbs.alignment.front import OPALIGN
from nbkit.verbs.conversion.convert import CONVERT
from nbkit.verbs.diff import DIFF
from nbkit.verbs.info import INFO
from nbkit.verbs.load import LOAD
from nbkit.verbs.opaudit import OPAUDIT
from nbkit.verbs.opcheck import OPCHECK
from nbkit.verbs.opcost import OPCOST
from nbkit.verbs.opdiff import OPDIFF
from nbkit.verbs.opdoctor import OPDOCTOR
from nbkit.verbs.operators.opbisect import OPBISECT
from nbkit.verbs.operators.opcapture import OPCAPTURE
from nbkit.verbs.operators.opcast import OPCAST
from nbkit.verbs.operators.opfallback import OPFALLBACK
from nbkit.verbs.operators.opreplay import OPREPLAY
from nbkit.verbs.operators.opstable import OPSTABLE
from nbkit.verbs.opgraph import OPGRAPH
from nbkit.verbs.opreport import OPREPORT
from nbkit.verbs.optime import OPTIME
from nbkit.verbs.optrace import OPTRACE
from nbkit.verbs.ranks.hang import HANG
from nbkit.verbs.verb import Recorder, Verb
from nbkit.views.node_table import NODES_VIEW
from nbkit.views.op_table.node_columns import VERB as COST_TABLE
from nbkit.views.ranks_view import RANKS_VIEW
from nbkit.views.static_html.view import VIEWS

# A new verb joins by its own file and one entry here; subcommands and options are listed in this order.
VERBS: dict[str, Verb] = {
    verb.name: verb
    for verb in (
        *(OPTRACE, OPTIME, OPDIFF, OPCHECK, OPAUDIT, OPCOST, OPDOCTOR),
        *(OPFALLBACK, OPCAST, OPBISECT, OPSTABLE, OPCAPTURE, OPREPLAY),
        *(LOAD, OPGRAPH, OPALIGN, OPREPORT, DIFF, CONVERT, INFO, HANG),
    )
}
RECORDERS: dict[str, Recorder] = {verb.name: verb.recorder for verb in VERBS.values() if verb.recorder is not None}
VIEWS[RANKS] = RANKS_VIEW  # of a job, whose ranks any verb may have recorded
VIEWS.update({verb.name: verb.view for verb in VERBS.values() if verb.view is not None})
VIEWS[COST_TABLE] = NODES_VIEW  # of no verb: nothing is recorded


def has_findings(trace: Trace) -> bool:
    """Returns whether a verb found something wrong in the step: an error or a warning, no mere hint."""
    return "findings" in trace.frames and len(wrong(trace.findings)) > 0
