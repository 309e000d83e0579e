"""optrace records every op of a step. Its trace is shown as the op table and tables of where the self time went."""

from nbkit.trace.trace import Trace
from nbkit.verbs.options.generated import Option
from nbkit.verbs.verb import ABOUT_PATTERNS, Recorder, Verb, why_empty
from nbkit.views.ops_view import OPS_VIEW


def _nothing(trace: Trace) -> str | None:
    if not len(trace.ops) and (left_out := trace.meta.get("filtered_ops")):
        return f"The filters left out all {left_out} recorded ops; loosen them to see some."
    return why_empty(trace)


OPTRACE = Verb(
    "optrace",
    view=OPS_VIEW,
    recorder=Recorder(
        home="nbkit.capture.optrace:optrace",
        summary="record every op of the step",
        description="Record every op of this cell: API calls and the aten ops below them, forward, backward and "
        "optimizer.",
        notes=f"While the cell awaits, ops of other asyncio tasks of this thread are recorded too.\n\n{ABOUT_PATTERNS}",
        special={
            "values": Option(
                help="stats adds mean, std, min, max, norm, NaN and Inf counts, and checks as opcheck does (slow)"
            ),
        },
        nothing=_nothing,
    ),
)
