"""What makes a function of traces a line magic: its name, its options, and what it does with the traces it is given."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import no_var_expand
from IPython.display import display

from nbkit.errors import NbkitError, nearest
from nbkit.magics.arguments import LineParser, wants_help
from nbkit.magics.session import show_text
from nbkit.trace import Trace

# Finds the trace of a name; raises NbkitError.
Finder = Callable[[str], Trace]


@dataclass(frozen=True)
class LineMagic:
    """One line magic; `nbkit.magics.LINE_MAGICS` lists them.

    `run` is given the options and what finds a trace by its name, and gives back what is shown, by MIME type; it raises
    NbkitError on what it cannot use.
    """

    name: str
    parser: LineParser
    run: Callable[[Namespace, Finder], dict[str, str]]


def line_function(shell: InteractiveShell, magic: LineMagic) -> Callable[[str], None]:
    """The function to register under the magic's name; its docstring is the magic's help."""

    @no_var_expand
    def run_line(line: str) -> None:
        __tracebackhide__ = True
        if wants_help(line):
            show_text(magic.parser.format_help())
            return
        options = magic.parser.parse_line(line)
        try:
            shown = magic.run(options, lambda name: trace_named(shell.user_ns, name))
        except NbkitError as error:
            raise UsageError(f"%{magic.name}: {error}") from error
        display(shown, raw=True)

    run_line.__name__ = magic.name
    run_line.__doc__ = magic.parser.format_help()
    return run_line


def trace_named(names: dict[str, object], name: str) -> Trace:
    """The trace that a name stands for. Raises NbkitError if there is none, with the traces there are."""
    value = names.get(name)
    if isinstance(value, Trace):
        return value
    known = [other for other, one in names.items() if isinstance(one, Trace)]
    if name in names:
        raise NbkitError(f"{name} is no trace but a {type(value).__name__}; {_traces(name, known)}")
    raise NbkitError(f"there is no {name!r}; {_traces(name, known)}")


def _traces(name: str, known: list[str]) -> str:
    return nearest(name, known) if known else "no trace is there yet: %%optrace -o NAME makes one."
