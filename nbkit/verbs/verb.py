"""Verb: what recording by one verb needs to know from a line of options, whoever reads the line."""

import argparse
from argparse import Namespace
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from nbkit.trace.trace import Trace

# A parser, or a group of options in one.
OptionHolder = argparse._ActionsContainer


def no_findings(trace: Trace) -> int:
    """0: such a verb records and judges nothing."""
    return 0


@dataclass(frozen=True)
class Verb:
    """One verb that records; `nbkit.verbs.VERBS` lists them.

    `add_options` gives a parser the verb's own options; `record` turns what it parsed into the context manager that
    yields the trace, and raises NbkitError on a value it cannot use. A verb that `is_repeated` times several runs of
    one step in one trace: its options have `warmup` and `repeats`, and what it records with has begin_run() and
    end_run(). `findings` counts what is wrong in a trace.
    """

    name: str
    summary: str
    add_options: Callable[[OptionHolder], None]
    record: Callable[[Namespace], AbstractContextManager[Trace]]
    findings: Callable[[Trace], int] = no_findings
    is_repeated: bool = False
