"""Makes the magic function of a verb: for `%%verb?`, `%lsmagic`, scripts, and a `%%` line below it.

It is handed the cell as text and compiles it itself; a cell in a notebook goes through `nbkit.magics.transform` instead
and can do more: here `await` is a syntax error, as below `%%time`.
"""

import ast
from collections.abc import Callable
from itertools import takewhile
from types import CodeType

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import no_var_expand

from nbkit.capture.raw.running import check_nesting
from nbkit.compat.ipython_versions import output_can_be_silenced
from nbkit.errors import OptionError
from nbkit.magics.arguments import MagicFunction, wants_help
from nbkit.magics.cell_magic import CellMagic
from nbkit.magics.session import CellSession, show_text
from nbkit.verbs.registry import RECORDERS


def magic_function(shell: InteractiveShell, magic: CellMagic) -> Callable[..., object]:
    """Returns the function to register under the verb's name; its docstring is the verb's help."""

    def run_cell(line: str, cell: str) -> object:
        __tracebackhide__ = True
        if wants_help(line):
            show_text(magic.parser.format_help())
            return None
        if inner := _verb_above_code(cell):
            try:
                check_nesting(inner, [magic.name])
            except OptionError as error:
                raise UsageError(f"%%{magic.name} and %%{inner}: use one verb per cell.") from error
        session = CellSession(shell, magic, line, is_empty=not cell.strip())
        statements, expression = _compiled(shell, cell)
        with session:
            for _ in session.rounds():
                value = None  # that of the run before is not kept alive while the next runs
                exec(statements, shell.user_global_ns, shell.user_ns)
                if expression is not None:
                    value = eval(expression, shell.user_global_ns, shell.user_ns)
        return value

    function = MagicFunction(magic.name, run_cell, lambda: magic.parser)
    return no_var_expand(output_can_be_silenced(function))


def _verb_above_code(cell: str) -> str | None:
    """Returns the first of our cell magics among the `%%` lines that `cell` begins with."""
    lines = takewhile(lambda line: line.startswith("%%"), filter(str.strip, cell.splitlines()))
    return next((name for name in (line[2:].partition(" ")[0] for line in lines) if name in RECORDERS), None)


def _compiled(shell: InteractiveShell, cell: str) -> tuple[CodeType, CodeType | None]:
    """Returns the statements and the final expression of `cell`, with the line numbers seen in the notebook."""
    filled = cell.lstrip("\n")
    # IPython drops leading blank lines; they and the line of the magic itself are put back in front.
    source = "\n" * (1 + len(cell) - len(filled)) + shell.transform_cell(cell)
    # The shell counts a cell when it starts; the label in a traceback is the number shown beside the cell.
    file = shell.compile.cache(source, shell.execution_count - 1, raw_code=source)
    tree = shell.transform_ast(shell.compile.ast_parse(source, filename=file))
    expression = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        expression = shell.compile(ast.Expression(tree.body.pop().value), file, "eval")  # type: ignore[arg-type]
    return shell.compile(tree, file, "exec"), expression
