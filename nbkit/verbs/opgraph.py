"""opgraph from a line of options, whoever reads the line."""

from argparse import Namespace
from collections.abc import Callable

from nbkit.opgraph import opgraph
from nbkit.trace.trace import Trace
from nbkit.verbs.verb import OptionHolder


def add_options(parser: OptionHolder, source: str, source_help: str) -> None:
    """The options of a graph; `source` is what a source is called, `source_help` says what it may be."""
    against = "another graph, which it is compared with: what corresponds, and what only one of them has"
    parser.add_argument("--against", metavar=source, help=against)
    parser.add_argument("--graph", metavar="GRAPH", help="the one that is meant, where the source has several graphs")
    parser.add_argument("source", metavar=source, help=source_help)


def graph(options: Namespace, find: Callable[[str], object]) -> Trace:
    """The trace that the options ask for; `find` gives what a word stands for.

    Raises NbkitError on what cannot be used.
    """
    against = None if options.against is None else find(options.against)
    return opgraph(find(options.source), against=against, graph=options.graph)
