"""What makes a function of traces a line magic: its name, its options, and what it does with what it is given."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import no_var_expand
from IPython.display import display

from nbkit.errors import NbkitError
from nbkit.magics.arguments import LineParser, wants_help
from nbkit.magics.notebook import Notebook
from nbkit.magics.session import show_text
from nbkit.trace.trace import Trace


@dataclass(frozen=True)
class LineMagic:
    """One line magic; `nbkit.magics.LINE_MAGICS` lists them.

    `run` is given the options and the names of the notebook, and gives back what is shown: a trace, or texts by MIME
    type; null shows nothing. It raises NbkitError on what it cannot use.
    """

    name: str
    parser: LineParser
    run: Callable[[Namespace, Notebook], dict[str, str] | Trace | None]


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
            shown = magic.run(options, Notebook(shell))
        except NbkitError as error:
            raise UsageError(f"%{magic.name}: {error}") from error
        if shown is not None:
            display(shown, raw=isinstance(shown, dict))

    run_line.__name__ = magic.name
    run_line.__doc__ = magic.parser.format_help()
    return run_line
