"""opcapture saves chosen calls of a step in a folder. Its trace is shown as optrace's, with what was saved above."""

from nbkit.schema import CAPTURES
from nbkit.trace.trace import Trace
from nbkit.verbs.options.generated import Option
from nbkit.verbs.options.parser import absolute_path
from nbkit.verbs.verb import ABOUT_PATTERNS, PROGRAM, Recorder, Verb
from nbkit.views.ops_view import led_by
from nbkit.views.sections.section import Section, columns

SAVED = columns("calls: count, different ops: count, size: bytes, folder")


def capture_sections(trace: Trace, count: int) -> list[Section]:
    """Returns what was saved, and where."""
    captures = CAPTURES.check(trace.frames.get("captures", CAPTURES.frame()))
    size, folder = trace.meta.get("captured_bytes"), trace.meta.get("folder")
    row = (len(captures), captures["op"].nunique(), size, folder)
    return [Section("Captured calls", SAVED, [row], "%opreplay FOLDER runs them again")]


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
                ("--folder",),
                "FOLDER",
                "where to save; an older capture there becomes FOLDER-1, ...",
                absolute_path,
            ),
            "only": Option(
                metavar="TRACE",
                help="save only calls that this trace of opdiff or opcheck, or its folder, flags",
            ),
            "replace": Option(help="delete captured calls that are in the folder"),
            "max_bytes": Option(help="save N bytes at most (default: 4 GiB)"),
        },
        only_in_code=("parameters",),
        traces=("only",),
    ),
)
