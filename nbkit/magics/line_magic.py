"""line_function makes the function of a line magic, which is given a verb's options as text."""

from collections.abc import Callable
from functools import cache

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import no_var_expand
from IPython.display import display

from nbkit.errors import NbkitError
from nbkit.magics.arguments import LineParser, MagicFunction, add_result_options, wants_help
from nbkit.magics.session import show_text
from nbkit.trace.trace import Trace
from nbkit.verbs.notebook import Notebook
from nbkit.verbs.options.parser import telling_new_folders
from nbkit.verbs.verb import LineMagic


def line_parser(name: str, magic: LineMagic) -> LineParser:
    """Makes the parser of a line magic's options, which imports what runs."""
    parser = LineParser(f"%{name}", magic.description)
    if magic.stores_result:
        add_result_options(parser, name)
    magic.add_options(parser)
    return parser


def line_function(shell: InteractiveShell, name: str, magic: LineMagic) -> Callable[..., object]:
    """Returns the function to register under the magic's name; its docstring is the magic's help."""

    @cache
    def parser() -> LineParser:
        return line_parser(name, magic)

    def run_line(line: str) -> None:
        __tracebackhide__ = True
        if wants_help(line):
            show_text(parser().format_help())
            return
        options, notebook = parser().parse_line(line), Notebook(shell)
        try:
            with telling_new_folders(vars(options).values(), show_text):
                shown = magic.run(options, notebook)
        except NbkitError as error:
            raise UsageError(f"%{name}: {error}") from error
        if magic.stores_result:
            for stored in filter(None, (f"_{name}", options.output)):
                notebook.store(stored, shown)
        if magic.stores_result and options.quiet:
            return
        if magic.text is not None and isinstance(shown, Trace) and (text := magic.text(options, shown)) is not None:
            show_text(text)
        else:
            display(shown, raw=isinstance(shown, dict))

    return no_var_expand(MagicFunction(name, run_line, parser))
