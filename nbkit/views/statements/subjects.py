"""SUBJECTS lists what traces may tell, in the order in which brief and report say it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from nbkit.trace.trace import Trace
from nbkit.views.statements.against import against_statements
from nbkit.views.statements.alignment import agreement_statements
from nbkit.views.statements.cost import cost_statements, node_statements
from nbkit.views.statements.differences import difference_chips, difference_statements
from nbkit.views.statements.memory import memory_statements
from nbkit.views.statements.operators import bisection_statements, operator_statements, stability_statements
from nbkit.views.statements.ranks.hang import collective_chips, collective_statements
from nbkit.views.statements.ranks.said import rank_statements
from nbkit.views.statements.statement import Chip, Statement
from nbkit.views.statements.time import time_chips, time_statements, waiting_statements
from nbkit.views.statements.training import training_chips, training_statements
from nbkit.views.statements.values import checked_statements, seen_statements, value_chips


@dataclass(frozen=True)
class Look:
    """Describes what can be looked at, and by which verb.

    `short` is the question in a word. `nothing` is said of a trace by that verb, or by those that look at it `too`,
    in which there was nothing to look at: no op of these `phases`. What is not usual is not missed where nobody looked.
    """

    question: str
    short: str
    verb: str
    nothing: str
    too: Sequence[str] = ()
    phases: Sequence[str] = ()
    is_usual: bool = True


@dataclass(frozen=True)
class Subject:
    """Says what is told of traces that have a frame, or a name in meta, that is `of` it.

    `told` are the statements, null where nothing was looked at. A brief has their sentences; what is `in_report` stands
    in a report, too, beside the statements of the verb's view. What `leads` comes first in a brief, and the tone of
    what `judges` is that of the step.
    """

    of: Sequence[str]
    told: Callable[[Trace], list[Statement] | None]
    chips: Callable[[Trace], Iterable[Chip]] = lambda trace: ()
    look: Look | None = None
    in_report: bool = False
    leads: bool = False
    judges: bool = False

    def is_of(self, trace: Trace) -> bool:
        """Tells whether a trace may hold something of it."""
        return any(name in trace.frames or name in trace.meta for name in self.of)


VALUES = Look("NaN, Inf and lost precision", "NaN", "opcheck", "Not checked: no result was examined.", ["opdoctor"])
KERNELS = Look("results against a reference", "kernels", "opdiff", "Not compared: no tensor was compared.")
TRAINING = Look(
    "parameters, gradients and dataflow of training",
    "gradients",
    "opaudit",
    "Not audited: no module ran in the recording, and parameters outside modules are not looked at.",
    too=["opdoctor"],
    phases=["backward", "optimizer"],
)
BITS = Look("bits from run to run", "bits", "opstable", "Not run again: no call was.", is_usual=False)
TIME = Look("where the time goes", "time", "optime", "Not timed: no op ran.")
# A timing that finds nothing to save does not say that the step is right.
SUBJECTS = (
    Subject(["trials"], bisection_statements, leads=True),
    Subject(["alignment"], against_statements, in_report=True, leads=True),
    Subject(["alignment"], agreement_statements),
    Subject(["checked_tensors", "tensors"], checked_statements, value_chips, VALUES, judges=True),
    Subject(["diffs", "recordings"], difference_statements, difference_chips, KERNELS, judges=True),
    Subject(["parameters"], training_statements, training_chips, TRAINING, judges=True),
    Subject(["stability"], stability_statements, look=BITS, judges=True),
    Subject(["tensors"], seen_statements, judges=True),
    Subject(["ops", "step", "recordings"], time_statements, time_chips, TIME),
    Subject(["collectives"], waiting_statements),
    Subject(["ranks"], rank_statements),
    Subject(["costs"], cost_statements),
    Subject(["node_costs"], node_statements),
    Subject(["blocks"], memory_statements),
    Subject(["collectives"], collective_statements, collective_chips, judges=True),
    Subject(["replaced", "casts"], operator_statements, in_report=True),
)
