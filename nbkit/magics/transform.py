"""Turns `%%verb` and the code of a cell into that code inside a context manager, in three steps.

IPython's own way, a magic function that is handed the cell as text, changes line numbers, forbids `await` and hides the
last value. Here line 1 becomes a marker call that carries the options (LineStep), a one-line body gets IPython's
treatment of single lines such as `run step.py` (SingleLineStep), and the syntax tree of a marked cell is put into a
`with` (TreeStep), and there into a loop if its options ask for several runs. No step keeps state: IPython transforms a
cell several times, and cells nest.

Where such a cell still differs from the bare one: what `compile` rejects (`return` outside a function) is rejected
before the first statement runs, not when it is reached; and with `ast_node_interactivity="all"` the values shown
between statements are shown, and so formatted, inside the recording.
"""

import ast
import re
from collections.abc import Callable, Collection, Mapping

from IPython.core.inputtransformer2 import classic_prompt, ipython_prompt, leading_indent
from IPython.core.interactiveshell import InteractiveShell

from nbkit.magics.arguments import wants_help
from nbkit.magics.cell_magic import CellMagic
from nbkit.magics.marker import NAME, marked_line, marker_text, split_line

# What IPython does to the first lines of a bare cell: takes off an indent and pasted prompts.
CLEANERS: tuple[Callable[[list[str]], list[str]], ...] = (leading_indent, classic_prompt, ipython_prompt)
FUTURE_IMPORT = re.compile(r"\s*from\s+__future__\s+import\b")


class LineStep:
    """Replaces a `%%verb` line by the marker unless another `%%` line follows; the first step, on the text."""

    # check_complete leaves such steps out, so that a terminal waits for the body as it does for every cell magic.
    has_side_effects = True

    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def __call__(self, lines: list[str]) -> list[str]:
        if not lines or not lines[0].startswith("%%") or split_line(lines[0])[0] not in self._names:
            return lines
        start = _first_filled(lines, 1)
        body = lines[start:]
        for clean in CLEANERS:
            body = clean(body) if body else body
        if body and body[0].startswith("%%"):
            return lines
        has_future = any(map(FUTURE_IMPORT.match, body))
        return [marker_text(lines[0], as_string=has_future), *lines[1:start], *body]


class SingleLineStep:
    """Applies automagic and autocall to a body of one line, as in a bare cell; the second step, on plain Python."""

    has_side_effects = True

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell

    def __call__(self, lines: list[str]) -> list[str]:
        start = _first_filled(lines, 1)
        prefilter = self._shell.prefilter_manager
        if len(lines) != start + 1 or not lines[0].startswith(f"{NAME}(") or prefilter is None:
            return lines
        with self._shell.builtin_trap:
            line = prefilter.prefilter_lines(lines[start])
        return [*lines[:start], f"{line}\n"]


class TreeStep(ast.NodeTransformer):
    """Puts the code of a marked cell into its session; the third step, on the syntax tree."""

    def __init__(self, shell: InteractiveShell, magics: Mapping[str, CellMagic]) -> None:
        self._shell, self._magics = shell, magics

    def visit_Module(self, module: ast.Module) -> ast.Module:
        line = marked_line(module.body[0]) if module.body else None
        if line is not None:
            module.body = self._wrapped(line, module.body[0], module.body[1:])
            ast.fix_missing_locations(module)
        return module

    def _wrapped(self, line: str, marker: ast.stmt, body: list[ast.stmt]) -> list[ast.stmt]:
        if wants_help(split_line(line)[1]):
            return [ast.copy_location(ast.Expr(_call("help", ast.Constant(line))), marker)]
        start = _after_future_imports(body)
        future, body = body[:start], body[start:]
        session = _call("session", ast.Constant(line), ast.Constant(not body), ast.Constant(_awaits(body)))
        shown: list[ast.stmt] = []
        if body and isinstance(last := body[-1], ast.Expr):
            # The value goes round the end of the recording, so that what formats it is not recorded.
            body = [*body[:-1], ast.copy_location(ast.Expr(_call("keep", last.value)), last)]
            shown = [ast.copy_location(ast.Expr(_call("take")), last)]
        elif body and (name := _assigned_name(body[-1])) and self._interactivity() == "last_expr_or_assign":
            shown = [ast.copy_location(ast.Expr(ast.Name(name, ast.Load())), body[-1])]
        elif self._interactivity() == "last":
            # Else the `with` would be the last statement, and the shell would show every expression in it.
            shown = [ast.copy_location(ast.Pass(), marker)]
        code: list[ast.stmt] = body or [ast.Pass()]
        # Inside our loop, a `break` that belongs to no loop of the cell would compile.
        if self._repeats(line) and not _breaks(body):
            code = [ast.copy_location(_loop(code), marker)]
        block = ast.copy_location(ast.With([ast.withitem(session)], code), marker)
        return [*future, block, *shown]

    def _repeats(self, line: str) -> bool:
        name, options = split_line(line)
        return name in self._magics and self._magics[name].repeats_line(options)

    def _interactivity(self) -> str:
        return str(self._shell.ast_node_interactivity)


def _first_filled(lines: list[str], start: int) -> int:
    """Returns the index of the first line from `start` on that is not blank; the number of lines if there is none."""
    return next((index for index in range(start, len(lines)) if lines[index].strip()), len(lines))


def _call(method: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name(NAME, ast.Load()), method, ast.Load()), list(arguments), [])


def _loop(code: list[ast.stmt]) -> ast.For:
    """Repeats `code` for each run of the session; the loop's own variable is an attribute of the marker."""
    return ast.For(ast.Attribute(ast.Name(NAME, ast.Load()), "round", ast.Store()), _call("rounds"), code, [])


def _breaks(body: list[ast.stmt]) -> bool:
    """Tells whether a `break` or `continue` belongs to no loop in the code, a syntax error in a bare cell."""
    pending: list[ast.AST] = list(body)
    while pending:
        match node := pending.pop():
            case ast.Break() | ast.Continue():
                return True
            case ast.For() | ast.AsyncFor() | ast.While():
                pending += node.orelse
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                pass
            case _:
                pending += ast.iter_child_nodes(node)
    return False


def _awaits(body: list[ast.stmt]) -> bool:
    """Tells whether the code itself awaits; functions that it only defines do not count."""
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)) or getattr(node, "is_async", False):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            pending += ast.iter_child_nodes(node)
    return False


def _after_future_imports(body: list[ast.stmt]) -> int:
    """Returns how many statements must stay in front: everything up to the last leading `from __future__` import."""
    count = 0
    for index, statement in enumerate(body):
        is_docstring = index == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            count = index + 1
        elif not is_docstring:
            break
    return count


def _assigned_name(statement: ast.stmt) -> str | None:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case ast.AugAssign(target=ast.Name(id=name)) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return None
