"""opcapture saves chosen calls of a step in a folder. Its trace is shown as optrace's, with what was saved above."""

from nbkit.verbs.options.generated import Option
from nbkit.verbs.options.parser import absolute_path
from nbkit.verbs.verb import ABOUT_PATTERNS, PROGRAM, Recorder, Verb
from nbkit.views.ops_view import led_by
from nbkit.views.sections.replay import capture_sections

OPCAPTURE = Verb(
    "opcapture",
    view=led_by(capture_sections),
    recorder=Recorder(
        home="nbkit.capture.operators.capture:opcapture",
        summary="save the inputs and results of ops, to run them again",
        description="Save chosen calls of this cell with their inputs and results, to run them again: forward, "
        "backward and optimizer.",
        notes=f"%opreplay FOLDER, or `{PROGRAM} replay FOLDER`, runs the calls again.\n\n{ABOUT_PATTERNS}",
        special={
            "folder": Option(
                ("--folder",), "FOLDER", "where to save; captured calls there are replaced", absolute_path
            ),
            "only": Option(
                metavar="TRACE",
                help="save only calls that this trace of opdiff or opcheck, or its folder, flags",
            ),
            "max_bytes": Option(help="save N bytes at most (default: 4 GiB)"),
        },
        only_in_code=("parameters",),
        traces=("only",),
    ),
)
