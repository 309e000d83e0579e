"""Runs `python -m nbkit doctor`: finds what is wrong with the steps of a script, or with a short script as a whole."""

from argparse import Namespace
from collections.abc import Sequence

from nbkit.command_line.audit import audit_parser, script_options
from nbkit.command_line.parser import bad_use
from nbkit.command_line.run import RunCommand
from nbkit.verbs.options.parser import absolute_path
from nbkit.verbs.verb import PROGRAM

DESCRIPTION = f"""\
Run a script as `python SCRIPT ARGS...` does, and say what is wrong with it: NaN
and Inf, training, time and memory, in one list, the causes first.

    {PROGRAM} doctor train.py --step train_step
        looks at the calls of the function train_step
    {PROGRAM} doctor train.py --step :41 --steps 200 -- --lr 3e-4
        looks at 200 passes through the loop at line 41, then ends the script
    {PROGRAM} doctor infer.py --report infer.html
        looks at the whole script, a short one, as it runs; writes a report, too

With --step all steps are watched as `{PROGRAM} audit` does, and some run again
when the script is over: the first three, the last and those that stand out.
Without it the script is recorded once, as it runs, and its time is a bound.

The findings go to stdout when the script is over. Exit status: that of the
script if it is not 0; 1 if --fail-on-findings and there are errors or warnings;
2 if an option cannot be used or nothing was recorded; else 0."""


def read_options(words: Sequence[str]) -> Namespace:
    """Returns the options, and `target`: the script's name and its arguments, which stand after `--`."""
    parser = audit_parser("doctor", DESCRIPTION, "[--step WHERE]")
    report = "write an HTML report to FILE, too; one that is there is replaced"
    parser.add_argument("--report", metavar="FILE", type=absolute_path, help=report)
    options = script_options(parser, words)
    if options.step is None and options.steps is not None:
        parser.error("--steps counts the steps that --step names; give --step FUNCTION, or --step :LINE of a loop.")
    return options


def _run(words: Sequence[str]) -> int:
    options = read_options(words)
    # What follows imports torch, which options do not need.
    from nbkit.command_line.doctor_session import StepsDoctor, WholeDoctor

    with bad_use(DOCTOR.name):
        session = WholeDoctor(options) if options.step is None else StepsDoctor(options)
    return session.run()


DOCTOR = RunCommand("doctor", "run a script and say what is wrong with it", "doctor train.py --step train_step", _run)
