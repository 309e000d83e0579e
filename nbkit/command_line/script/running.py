"""Runs a script as `python SCRIPT` or `python -m MODULE` does."""

import ast
import builtins
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from types import CodeType, ModuleType, TracebackType

from nbkit.command_line.script.rewriting import NAME, with_step
from nbkit.command_line.script.target import Target
from nbkit.errors import OptionError

RUNPY = "<frozen runpy>"
Step = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True)
class Script:
    """Says what is run: the file, its spec if it is a module, and the words that are its sys.argv."""

    path: Path
    spec: ModuleSpec | None
    arguments: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.path.name if self.spec is None else self.spec.name


def script_file(name: str, arguments: list[str]) -> Script:
    """Returns the script in a file. Raises OptionError if it is not there."""
    path = Path(name)
    if path.is_dir():
        raise OptionError(f"{name} is a folder; give the script in it.")
    if not path.is_file():
        raise OptionError(f"There is no {name}; give a Python script, or -m and the name of a module.")
    return Script(Path(os.path.abspath(name)), None, (name, *arguments))


def script_module(name: str, arguments: list[str]) -> Script:
    """Returns the module that `-m` names, or the `__main__` of a package. Raises OptionError if it cannot be found."""
    try:
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = find_spec(f"{name}.__main__")
    except (ModuleNotFoundError, ValueError):
        spec = None
    if spec is None or not isinstance(spec.loader, SourceFileLoader):
        raise OptionError(f"There is no module {name!r} that can be run from its source here; give another name.")
    return Script(Path(spec.loader.path), spec, (spec.loader.path, *arguments))


def compiled(script: Script, target: Target | None) -> CodeType:
    """Compiles the script, with its step if that is in it. Raises OptionError; SyntaxError as Python would."""
    source, file = _source(script.path), str(script.path)
    try:
        tree = ast.parse(source, file)
    except SyntaxError:
        _hide_our_frames({}, is_module=False)
        raise
    if target is not None and target.is_in_script:
        tree = with_step(tree, target, script.name)
    return compile(tree, file, "exec", dont_inherit=True)


def run(script: Script, code: CodeType, step: Step, *, is_step: bool) -> None:
    """Run the code as the main module, as the step itself or with `step` in reach of the code that was rewritten.

    What it raises is shown with its own frames only.
    """
    module = prepared_main(script)
    # It stays: threads and exit handlers may come to a step when the script is over.
    setattr(builtins, NAME, step)
    around = step() if is_step else nullcontext()
    try:
        with around:
            exec(code, vars(module))
    except BaseException:
        _hide_our_frames(vars(module), is_module=script.spec is not None)
        raise


def prepared_main(script: Script) -> ModuleType:
    """Returns a new main module, with sys.argv and sys.path as Python sets them."""
    module = ModuleType("__main__")
    loader = SourceFileLoader("__main__", str(script.path)) if script.spec is None else script.spec.loader
    vars(module).update(__file__=str(script.path), __loader__=loader, __builtins__=builtins, __spec__=script.spec)
    if script.spec is not None:
        vars(module).update(__package__=script.spec.parent, __cached__=script.spec.cached)
    elif not sys.flags.safe_path:
        vars(module).update(__cached__=None)
        sys.path[0] = os.path.dirname(os.path.realpath(script.path))
    sys.argv[:] = script.arguments
    sys.modules["__main__"] = module
    return module


def _source(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise OptionError(f"Cannot read {path}: {(error.strerror or str(error)).lower()}.") from error


def _hide_our_frames(names: dict[str, object], *, is_module: bool) -> None:
    """Have the exception that ends the process shown with the traceback that it has without us.

    `names` are those of the script; a module that is run has Python's own two frames above its first one.
    """
    shows = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        places = list(_places(traceback))
        own = next((index for index, place in enumerate(places) if place.tb_frame.f_globals is names), len(places))
        above = [place for place in places[:own] if is_module and place.tb_frame.f_code.co_filename == RUNPY]
        kept = above + places[own:]
        for place, following in pairwise(kept):
            place.tb_next = following
        first = kept[0] if kept else None
        shows(kind, error.with_traceback(first), first)

    sys.excepthook = hook


def _places(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next
