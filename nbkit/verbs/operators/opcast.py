"""opcast computes chosen ops of a step in another dtype, or says what that would cost. Shown above the ops."""

from nbkit.trace.trace import Trace
from nbkit.verbs.options.generated import Option
from nbkit.verbs.verb import ABOUT_PATTERNS, Recorder, Verb, nothing_in
from nbkit.views.ops_view import led_by
from nbkit.views.sections.section import Section
from nbkit.views.statements.operators import cast_sections, replaced_sections


def _sections(trace: Trace, count: int) -> list[Section]:
    return [*cast_sections(trace, count), *replaced_sections(trace, count)]


OPCAST = Verb(
    "opcast",
    view=led_by(_sections),
    recorder=Recorder(
        home="nbkit.capture.operators.cast:opcast",
        summary="compute chosen ops of the step in another dtype",
        description="Compute chosen ops of this cell in another dtype; with --dry-run, say what that would cost each.",
        notes="If a step in half precision is right with an op in float32 and wrong without, that op needs it. The "
        "frame `replaced` has a row per call that was cast; with --dry-run, `casts` one per result.\n\n"
        f"{ABOUT_PATTERNS}",
        special={
            "dtype": Option(
                ("--dtype",), help="dtype to compute in: float32, bfloat16, ..., or float16->float32,bfloat16->float32"
            ),
        },
        nothing=nothing_in(
            "replaced",
            "casts",
            why="No op was cast: the filters, the dtypes or the kind of the ops left none; see trace.meta['skipped'].",
        ),
    ),
)
