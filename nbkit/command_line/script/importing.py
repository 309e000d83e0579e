"""Rewrites the source of a module that the script imports so that its step is recorded."""

import ast
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from nbkit.command_line.script.rewriting import with_step
from nbkit.command_line.script.target import Target
from nbkit.errors import OptionError


class StepFinder(MetaPathFinder):
    """Finds what other finders find, and has the module of the target loaded with its step.

    `problem` is None once the module was loaded so, else a sentence that says why it was not.
    """

    def __init__(self, target: Target) -> None:
        if target.module in sys.modules:
            raise OptionError(
                f"{target.module} is part of what nbkit itself has loaded; name a function of the script, or the loop "
                "around the step."
            )
        self.target = target
        self.problem: str | None = f"the script never imported {target.module or target.file}"

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if self.target.module not in (None, fullname):
            return None
        others = [finder for finder in sys.meta_path if finder is not self]
        specs = (finder.find_spec(fullname, path, target) for finder in others if hasattr(finder, "find_spec"))
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is None or not isinstance(spec.loader, SourceFileLoader) or not self._is_wanted(spec):
            return None
        spec.loader = _StepLoader(spec.loader.name, spec.loader.path, self)
        return spec

    def _is_wanted(self, spec: ModuleSpec) -> bool:
        return self.target.module is not None or (
            spec.origin is not None and Path(spec.origin).resolve() == self.target.file
        )


class _StepLoader(SourceFileLoader):
    """Compiles the module anew, as the code that Python keeps in __pycache__ has no step."""

    def __init__(self, fullname: str, path: str, finder: StepFinder) -> None:
        super().__init__(fullname, path)
        self.finder = finder

    def get_code(self, fullname: str) -> CodeType | None:
        try:
            tree = with_step(ast.parse(self.get_data(self.path), self.path), self.finder.target, self.path)
        except SyntaxError:
            return super().get_code(fullname)  # which raises it as a bare import does
        except OptionError as error:
            self.finder.problem = str(error).rstrip(".")
            return super().get_code(fullname)
        self.finder.problem = None
        return compile(tree, self.path, "exec", dont_inherit=True)
