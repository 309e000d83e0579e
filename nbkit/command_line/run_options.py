"""Reads the options of `python -m nbkit run`: its own, and those of the verb that `--verb` names."""

from argparse import REMAINDER, Namespace
from collections.abc import Sequence

from nbkit.command_line.parser import CommandParser
from nbkit.errors import nearest
from nbkit.verbs.options.parser import HELP_OPTIONS, absolute_path, whole_number
from nbkit.verbs.registry import RECORDERS
from nbkit.verbs.verb import ABOUT_PATTERNS, PROGRAM

DESCRIPTION = f"""\
Run a script as `python SCRIPT ARGS...` does, unchanged, with its steps recorded.

    {PROGRAM} run -o first train.py --lr 3e-4
        records the whole script (a short one)
    {PROGRAM} run -o step --step train_step train.py
        records the first call of the function train_step
    {PROGRAM} run -o step --step :41 --skip 2 train.py
        records the third pass through the loop at line 41
    {PROGRAM} run -o fast --verb optime --step Trainer.step -r 10 train.py
        times ten calls of Trainer.step

Output, exit status, exceptions and tracebacks are those of the script; a summary of the trace goes to stderr at its
end. Each step is saved in TRACE_DIR as soon as it is recorded, also if the script then fails, exits or is interrupted;
`{PROGRAM} load TRACE_DIR` shows it again.

--step names the step: FUNCTION of the script (train_step, Trainer.step), MODULE:FUNCTION of a module that it imports,
FILE:LINE or :LINE of a loop (each pass through its body is a step). Several steps become a folder step=N each; with
optime they are the repeats of one timing. What runs in processes that the script starts is left out.

Exit status: that of the script if it is not 0; 1 if --fail-on-findings and there are some; 2 if an option cannot be
used or the step was never met; else 0."""
DEFAULT_VERB = "optrace"


def read_options(words: Sequence[str]) -> Namespace:
    """Returns the options before the script and `target`, the script's name and its arguments; ends on bad use."""
    first, _ = _all_options().parse_known_args(words)
    if first.verb not in RECORDERS:
        CommandParser("run", "").error(f"--verb {first.verb!r} is not known; {nearest(first.verb, RECORDERS)}")
    parser = RunParser(first.verb)
    options = parser.parse_words(HELP_OPTIONS[:1] if first.help else words)
    parser.complete(options)
    return options


class RunParser(CommandParser):
    """Reads the options of `run` for one verb."""

    def __init__(self, verb: str) -> None:
        super().__init__("run", DESCRIPTION)
        self.usage = f"{self.prog} [OPTIONS] -o TRACE_DIR {{SCRIPT | -m MODULE}} [ARGS...]"
        self.recorder = RECORDERS[verb]
        _add_options(self, is_repeated=self.recorder.is_repeated)
        others = ", ".join(name for name in RECORDERS if name != verb)
        patterns = f" {ABOUT_PATTERNS}" if ABOUT_PATTERNS in self.recorder.notes else ""
        about = f"For those of {others} give --verb.{patterns}"
        self.recorder.add_options(self.add_argument_group(f"options of {verb}", about))

    def unknown_sentence(self, word: str) -> str:
        name = word.partition("=")[0]
        for verb in RECORDERS:
            if name in RunParser(verb).long_options():
                return f"{name} is an option of {verb}; give --verb {verb} with it."
        return super().unknown_sentence(word)

    def complete(self, options: Namespace) -> None:
        """Check what belongs together, and fill in what was not given."""
        if options.module:
            options.target = options.module
        if not options.target:
            self.error(f"give a script to run; {self.prog} --help shows how.")
        if options.output is None:
            self.error("give -o TRACE_DIR, the folder that the trace goes to.")
        counts = {"--skip": options.skip, "--steps": options.steps, "--stop-after": options.stop_after or None}
        if options.step is None and (named := [name for name, value in counts.items() if value is not None]):
            self.error(f"{named[0]} is about the steps that --step names; give --step FUNCTION or --step :LINE, too.")
        if options.skip is None:
            # What a first step does once (memory, optimizer state) would be taken for its time. A script runs once.
            options.skip = int(self.recorder.is_repeated and options.step is not None)
        options.steps = 1 if options.steps is None else options.steps


def _add_options(parser: CommandParser, *, is_repeated: bool) -> None:
    skip, steps = (["-w", "--warmup"], ["-r", "--repeats"]) if is_repeated else ([], [])
    verbs = f"what to do with the steps: {', '.join(RECORDERS)} (default: {DEFAULT_VERB}); see below"
    parser.add_argument("--verb", metavar="NAME", default=DEFAULT_VERB, help=verbs)
    output = "the folder that the trace goes to; an older trace there is replaced"
    parser.add_argument("-o", "--output", metavar="TRACE_DIR", type=absolute_path, help=output)
    parser.add_argument("--step", metavar="WHERE", help="FUNCTION, MODULE:FUNCTION, FILE:LINE or :LINE; see above")
    first = f"leave the first N steps out (default: {int(is_repeated)})"
    parser.add_argument("--skip", *skip, type=whole_number(0), metavar="N", help=first)
    parser.add_argument("--steps", *steps, type=whole_number(1), metavar="N", help="record N steps (default: 1)")
    for flags, meaning in (
        (["--stop-after"], "end the script after the last of these steps, as sys.exit() would"),
        (["--fail-on-findings"], "exit with 1 if opdiff found mismatches, or opcheck or opaudit findings"),
        (["-q", "--quiet"], "no summary"),
    ):
        parser.add_argument(*flags, action="store_true", help=meaning)
    parser.add_argument("-m", dest="module", nargs=REMAINDER, metavar="MODULE", help="run a module, as python -m does")
    parser.add_argument("target", nargs=REMAINDER, metavar="SCRIPT", help="the script, and all that it is given")


def _all_options() -> CommandParser:
    """Returns a parser that knows the options of all verbs, and so where the script begins; it tells the verb."""
    parser = CommandParser("run", "", conflict_handler="resolve")
    parser.add_argument(*HELP_OPTIONS, action="store_true")
    _add_options(parser, is_repeated=True)
    for recorder in RECORDERS.values():
        recorder.add_options(parser)
    for action in parser._actions:
        action.required, action.choices = False, None  # of which of the verbs they are is not known yet
    return parser
