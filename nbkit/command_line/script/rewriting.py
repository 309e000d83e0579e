"""Puts the step of a module inside a `with` block, in its syntax tree; every line keeps its number."""

import ast
from collections.abc import Iterator

from nbkit.command_line.script.target import Target
from nbkit.errors import OptionError, nearest

# What the block calls; it lies in builtins, so that no name of the module is taken.
NAME = "_nbkit_step"
Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


def with_step(tree: ast.Module, target: Target, file: str) -> ast.Module:
    """Changes `tree` so that its step is recorded. Raises OptionError if the code that `target` names is not in it."""
    if target.name is not None:
        for function in _functions_named(target.name, tree, file):
            first = int(ast.get_docstring(function, clean=False) is not None)
            function.body[first:] = [_block(function.body[first:] or [ast.copy_location(ast.Pass(), function)])]
    else:
        assert target.line is not None
        loop = loop_at(target.line, tree, file)
        loop.body = [_block(loop.body)]
    return tree


def _block(body: list[ast.stmt]) -> ast.stmt:
    """Puts `with _nbkit_step():` around statements, at the line of the first."""
    step = ast.Call(ast.Name(NAME, ast.Load()), [], [])
    block = ast.copy_location(ast.With([ast.withitem(step)], body), body[0])
    return ast.fix_missing_locations(block)


def _functions_named(name: str, tree: ast.Module, file: str) -> list[Function]:
    """Returns definitions of that name, of which a module may have several (`if ... else`)."""
    known = list(functions(tree))
    result = [function for known_name, function in known if known_name == name]
    if not result:
        names = {known_name for known_name, _ in known}
        hint = nearest(name, names) if names else "it defines no function; name a loop by its line, such as :12."
        elsewhere = " Of another module: MODULE:FUNCTION." if names else ""
        raise OptionError(f"{file} defines no function {name!r}; {hint}{elsewhere}")
    if any("compile" in ast.unparse(decorator) for function in result for decorator in function.decorator_list):
        raise OptionError(f"{name} is compiled as a whole; name a function that calls it, or the loop that it runs in.")
    if any(_yields(function) for function in result):
        raise OptionError(
            f"{name} is a generator, whose calls end before its work begins; name the loop that it runs in by its line."
        )
    return result


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Yields every function with its qualified name: `train`, `Trainer.step`, `outer.inner`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function | ast.ClassDef):
            if isinstance(node, Function):
                yield f"{prefix}{node.name}", node
            yield from functions(node, f"{prefix}{node.name}.")
        else:
            yield from functions(node, prefix)


def loop_at(line: int, tree: ast.Module, file: str) -> Loop:
    """Returns the loop that begins at the line, else the innermost one around it. Raises OptionError."""
    loops = [node for node in ast.walk(tree) if isinstance(node, Loop)]
    around = [loop for loop in loops if loop.lineno <= line <= (loop.end_lineno or loop.lineno)]
    if around:
        return max(around, key=lambda loop: loop.lineno)
    if not loops:
        raise OptionError(f"{file} has no loop, so none is at line {line}; name a function, or leave --step out.")
    lines = ", ".join(str(number) for number in sorted({loop.lineno for loop in loops})[:20])
    raise OptionError(f"Line {line} of {file} is in no loop; its loops begin at line {lines}.")


def _yields(function: Function) -> bool:
    """Returns whether the function itself is a generator; those that it only defines do not count."""
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own_nodes(function.body))


def own_nodes(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yields the nodes of statements, without those inside of functions and classes that they only define."""
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, Scope):
            pending += ast.iter_child_nodes(node)
