"""Runs `python -m nbkit audit`: reads its options."""

from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence

from nbkit.command_line.parser import CommandParser, bad_use
from nbkit.command_line.run import RunCommand
from nbkit.verbs.options.parser import absolute_path, whole_number
from nbkit.verbs.verb import PROGRAM
from nbkit.views.brief.text import TOKENS

DESCRIPTION = f"""\
Run a script as `python SCRIPT ARGS...` does, watch all its training steps, and
say what is wrong with them.

    {PROGRAM} audit train.py --step train_step
        audits the calls of the function train_step
    {PROGRAM} audit train.py --step :41 --steps 200 -- --lr 3e-4
        audits 200 passes through the loop at line 41, then ends the script;
        what follows -- are its arguments
    {PROGRAM} audit train.py --step Trainer.step -o audit
        saves what was recorded in the folder audit, too

While the script runs, each step leaves its loss, the norm of its gradients, its
time and the memory held. When the script is over, the first three steps, the
last one and up to three that stand out (a loss that jumps or is NaN, an
exception) are run again, from the parameters, optimizer state, arguments and
random numbers that they began with, and looked at as opaudit, opcheck and
optime do; with another device than the CPU also as opdiff does. What the steps
print then is dropped; files that they write are written again. In the end all
is put back as the script has left it.

The findings go to stdout, the worst first, when the script is over. Exit
status: that of the script if it is not 0; 1 if --fail-on-findings and there are
errors or warnings; 2 if an option cannot be used or no step was met; 130 where
Ctrl-C ended the second look, with what is known until then; else 0."""
KEEP = "2GB"
UNITS = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30, "b": 1}


def read_options(words: Sequence[str]) -> Namespace:
    """Returns the options, and `target`: the script's name and its arguments, which stand after `--`."""
    parser = audit_parser("audit", DESCRIPTION, "--step WHERE")
    options = script_options(parser, words)
    if options.step is None:
        parser.error("give --step FUNCTION, or --step :LINE of a loop, to say what the training step is.")
    return options


def script_options(parser: CommandParser, words: Sequence[str]) -> Namespace:
    """Returns the options in `words`, and `target`: the script's name and its arguments, which stand after `--`."""
    words = list(words)
    own, rest = (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])
    options = parser.parse_words(own)
    name = options.module or options.script
    if not name:
        parser.error(f"give a script to run; {parser.prog} --help shows how.")
    options.target = [name, *rest]
    return options


def audit_parser(command: str, description: str, step: str) -> CommandParser:
    """Returns what reads the options of a subcommand that watches a script; `step` is that of its usage."""
    parser = CommandParser(command, description)
    parser.usage = f"{parser.prog} {{SCRIPT|-m MODULE}} {step} [...] [-- ARGS]"
    parser.about_unknown = " What the script is given stands behind --."
    parser.add_argument("--step", metavar="WHERE", help="FUNCTION, MODULE:FUNCTION, FILE:LINE or :LINE of a loop")
    steps = "end the script after N steps, as sys.exit() would (default: let it run to its end)"
    parser.add_argument("--steps", type=whole_number(1), metavar="N", help=steps)
    parser.add_argument("-o", "--output", metavar="FOLDER", type=absolute_path, help="save the traces there")
    kept = f"memory for copies of parameters and optimizer state, by which steps are run again (default: {KEEP})"
    parser.add_argument("--keep-bytes", type=size_in_bytes, metavar="SIZE", default=size_in_bytes(KEEP), help=kept)
    tokens = f"about how long the findings may be, in tokens of a language model (default: {TOKENS})"
    parser.add_argument("--tokens", type=whole_number(1), metavar="N", default=TOKENS, help=tokens)
    parser.add_argument("--name", help="what the audit is called where it is shown")
    fails = "exit with 1 if there are errors or warnings"
    parser.add_argument("--fail-on-findings", action="store_true", help=fails)
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as python -m does")
    parser.add_argument("script", nargs="?", metavar="SCRIPT", help="the script")
    return parser


def size_in_bytes(text: str) -> int:
    """Returns a size in bytes: '500MB', '2GiB' or a number."""
    number = text.rstrip("BbGgIiKkMm")
    unit = text[len(number) :].lower() or "b"
    try:
        return int(float(number) * UNITS[unit])
    except (ValueError, KeyError) as error:
        raise ArgumentTypeError(f"{text!r} is not a size; give such as 500MB or 2GiB.") from error


def _run(words: Sequence[str]) -> int:
    options = read_options(words)
    # What follows imports torch, which options do not need.
    from nbkit.command_line.audit_session import AuditSession

    with bad_use(AUDIT.name):
        session = AuditSession(options)
    return session.run()


AUDIT = RunCommand(
    "audit", "run a script and say what is wrong with its training steps", "audit train.py --step train_step", _run
)
