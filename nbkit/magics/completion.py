"""Completes what stands behind the name of a magic: options, their values, and names of traces."""

from argparse import Action
from collections.abc import Callable, Iterable

from IPython.core.interactiveshell import InteractiveShell

from nbkit.capture.scope.filters import PHASES
from nbkit.compat.ipython_versions import add_matcher, remove_matcher
from nbkit.magics.arguments import LineParser
from nbkit.trace.trace import Trace
from nbkit.verbs.notebook import Notebook
from nbkit.verbs.options.parser import absolute_path


class Completer:
    """Finds the words that may stand at the end of a line of a magic, as its parser reads it."""

    def __init__(self, shell: InteractiveShell, parser_of: Callable[[str], LineParser | None]) -> None:
        self._shell, self._parser_of = shell, parser_of

    def __call__(self, line: str) -> tuple[str, list[str]]:
        """Returns the last word of the line so far, or its part that is open, and what may stand in its place."""
        name, *words = line.lstrip().split(" ")
        parser = self._parser_of(name) if words and name.startswith("%") else None
        if parser is None:
            return "", []
        word, option = words[-1], parser._option_string_actions.get(next(iter(words[-2:-1]), ""))
        flag, equals, value = word.partition("=")
        if equals and flag.startswith("--"):
            word, option = value, parser._option_string_actions.get(flag)
        if option is not None and option.nargs != 0:
            known = self._values(option)
        elif word.startswith("-"):
            known = parser.long_options()
        else:
            known = next((self._values(one) for one in parser._actions if not one.option_strings), ())
        word = word.rpartition(",")[2]
        return word, sorted({text for text in known if text.startswith(word) and text != word})

    def _values(self, option: Action) -> Iterable[str]:
        if option.choices is not None:
            return map(str, option.choices)
        if option.type is absolute_path:  # IPython completes paths
            return ()
        lists: dict[str, Callable[[], Iterable[str]]] = {
            "ops": lambda: self._column("op"),
            "modules": lambda: self._column("module"),
            "phases": lambda: PHASES,
            "dtype": _dtypes,
            "checks": _checks,
            "name": tuple,
            "title": tuple,
        }
        if (values := lists.get(option.dest.removeprefix("exclude_").removeprefix("keep_"))) is not None:
            return values()
        if option.metavar in ("N", "X"):
            return ()
        traces = self._traces()
        # Other names stand for what the user has: a model, a device.
        return traces if option.dest == "output" or option.metavar == "TRACE" else {*traces, *self._names()}

    def _names(self) -> list[str]:
        return Notebook(self._shell).names()

    def _traces(self) -> list[str]:
        return [name for name, value in list(self._shell.user_ns.items()) if isinstance(value, Trace)]

    def _column(self, name: str) -> list[str]:
        """Returns what the last trace has in a column of its ops."""
        known = [value for value in list(self._shell.user_ns.values()) if isinstance(value, Trace) and value.complete]
        traces = [trace for trace in known if name in trace.frames.get("ops", ())]
        made = [(str(trace.meta.get("created", "")), number) for number, trace in enumerate(traces)]
        return list(traces[max(made)[1]].ops[name].dropna().unique()) if made else []


def _dtypes() -> list[str]:
    from nbkit.capture.operators.dtype_map import FLOAT8, FLOATING  # imports torch, as below

    return [str(dtype).removeprefix("torch.") for dtype in (*FLOATING, *FLOAT8)]


def _checks() -> tuple[str, ...]:
    from nbkit.capture.operators.stable.again import CHECKS

    return CHECKS


def install(shell: InteractiveShell, parser_of: Callable[[str], LineParser | None]) -> None:
    """Lets the shell complete lines of our magics."""
    add_matcher(shell, Completer(shell, parser_of))


def remove(shell: InteractiveShell) -> None:
    """Undoes install()."""
    remove_matcher(shell)
