"""StepCall holds what a step of a script began with: its names and arguments, so that it can be run again."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import CellType, CodeType, FrameType, FunctionType
from typing import Any

from nbkit.capture.watch.reached import may_hold_tensors, mentioned
from nbkit.command_line.script.rewriting import loop_at, own_nodes
from nbkit.errors import OptionError

MOST_ITEMS = 8


class StepCall:
    """Holds a call of the function that is the step, or a pass through the body of the loop at `line`.

    `number` counts the steps from 0. Values are held by reference: who changes them in place puts them back before.
    Those that hold a graph of autograd, such as the loss of the step before, are left out, as it would stay alive.
    """

    def __init__(self, frame: FrameType, number: int, line: int | None) -> None:
        self.number, self.line = number, line
        self.code: CodeType = frame.f_code
        self.module: dict[str, Any] = frame.f_globals
        self.names = _without_graphs(frame.f_globals)
        self.values = self.names if frame.f_locals is frame.f_globals else dict(frame.f_locals)

    def objects(self) -> Iterator[Any]:
        """Yields the objects of the script's own classes among its arguments, such as the trainer that is `self`."""
        for value in self.values.values():
            if type(value).__module__ == self.module.get("__name__") and hasattr(value, "__dict__"):
                yield value

    def mentioned(self) -> dict[str, Any]:
        """Returns the values of the names that its code mentions, and the code itself, without a name."""
        return {**mentioned(self.code, {**self.module, **self.values}), "": self.code}

    def run(self) -> None:
        """Runs it again. Raises OptionError if it cannot be; what the step itself raises passes through."""
        self.module.update(self.names)
        if self.line is not None:
            body = _body_of(self.code.co_filename, self.line)
            names = self.module if self.values is self.names else {**self.module, **self.values}
            exec(body, names)
            return
        if self.code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            raise OptionError(f"{self.code.co_qualname} is an async function")
        closure = tuple(CellType(self.values[name]) for name in self.code.co_freevars)
        function = FunctionType(self.code, self.module, self.code.co_name, None, closure)
        arguments, named = _arguments(self.code, self.values)
        function(*arguments, **named)


def _without_graphs(names: dict[str, Any]) -> dict[str, Any]:
    kept = dict(names)
    for name in [name for name, value in kept.items() if may_hold_tensors(type(value)) and _holds_graph(value)]:
        del kept[name]
    return kept


def _holds_graph(value: Any, depth: int = 2) -> bool:
    """Returns whether a tensor with a graph stands in a value; of long lists the last items tell."""
    if not isinstance(value, dict | list | tuple):
        return getattr(value, "grad_fn", None) is not None
    if depth == 0:
        return False
    items = [*value.values()][-MOST_ITEMS:] if isinstance(value, dict) else value[-MOST_ITEMS:]
    return any(may_hold_tensors(type(item)) and _holds_graph(item, depth - 1) for item in items)


def _arguments(code: CodeType, values: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Returns the arguments of a call, by position and by name, from the first values of its names."""
    names = iter(code.co_varnames)
    by_position = [values[next(names)] for _ in range(code.co_argcount)]
    by_name = {name: values[name] for name in (next(names) for _ in range(code.co_kwonlyargcount))}
    if code.co_flags & inspect.CO_VARARGS:
        by_position += values[next(names)]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        by_name |= values[next(names)]
    return by_position, by_name


def _body_of(file: str, line: int) -> CodeType:
    """Compiles the body of a loop as code of its own. Raises OptionError if it leaves the function around it."""
    loop = loop_at(line, ast.parse(Path(file).read_bytes(), file), file)
    if any(isinstance(node, ast.Return | ast.Await | ast.AsyncFor | ast.AsyncWith) for node in own_nodes(loop.body)):
        raise OptionError(f"the body of the loop at line {line} returns or awaits")
    # `break` and `continue` need a loop around them.
    once = ast.For(ast.Name("_", ast.Store()), ast.Tuple([ast.Constant(None)], ast.Load()), loop.body, [])
    tree = ast.Module([ast.fix_missing_locations(ast.copy_location(once, loop))], [])
    return compile(tree, file, "exec", dont_inherit=True)
