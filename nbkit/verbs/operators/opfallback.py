"""opfallback runs chosen ops on the CPU inside the step. Its trace is shown with what was replaced above the ops."""

from nbkit.verbs.verb import ABOUT_PATTERNS, Recorder, Verb, nothing_in
from nbkit.views.ops_view import led_by
from nbkit.views.statements.operators import replaced_sections

OPFALLBACK = Verb(
    "opfallback",
    view=led_by(replaced_sections),
    recorder=Recorder(
        home="nbkit.capture.operators.fallback:opfallback",
        summary="run chosen ops of the step on the CPU",
        description="Run chosen ops of this cell on the CPU, forward, backward and optimizer, with all their effects.",
        notes="If the step is right with an op on the CPU and wrong without, the device's kernel of that op is at "
        f"fault. The frame `replaced` has a row per call.\n\n{ABOUT_PATTERNS}",
        nothing=nothing_in(
            "replaced",
            why="No op ran on the CPU instead: the filters or the kind of the ops left none; see "
            "trace.meta['skipped'].",
        ),
    ),
)
