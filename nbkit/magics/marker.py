"""Makes the call that replaces the `%%verb` line of a cell, and the object that it calls."""

import ast
import builtins
from collections.abc import Iterator, Mapping

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from nbkit.magics.cell_magic import CellMagic
from nbkit.magics.session import CellSession, show_text

# Shown as line 1 of a traceback's excerpt, so it reads like the line it replaces. The object lies in builtins: there it
# survives %reset and stays out of the user's namespace, also in an embedded shell.
NAME = "_nbkit_magic"


class Marker:
    """Serves the rewritten cell: `session()`, `rounds()` around its code, `keep()`, `take()` for its last value."""

    def __init__(self, shell: InteractiveShell, magics: Mapping[str, CellMagic]) -> None:
        self._shell, self._magics = shell, magics
        self._value: object = None
        self._session: CellSession | None = None
        self.round: object = None  # what the loop over rounds() counts with, so that the user gets no new name

    def __call__(self, line: str) -> None:
        raise UsageError(f"{line.split()[0]} must be the first line of its cell here; put it above the other magic.")

    def session(self, line: str, is_empty: bool, awaits: bool) -> CellSession:
        """Returns the context manager for the cell that began with `line`. Raises UsageError on a bad option."""
        name, options = split_line(line)
        self._value = None
        magic = self._magics[name]
        session = CellSession(self._shell, magic, options, is_empty=is_empty, awaits=awaits)
        self._session = session if magic.repeats_line(options) else None
        return session

    def rounds(self) -> Iterator[object]:
        """Yields one item per run of the cell whose session has just begun."""
        # Given away, so that cells inside this one have their own, and that nothing here keeps the trace alive.
        session, self._session = self._session, None
        assert session is not None, "The tree has this loop only if the options ask for it."
        for _ in session.rounds():
            self._value = None
            yield None

    def help(self, line: str) -> None:
        """Show the help of the verb that `line` names."""
        show_text(self._magics[split_line(line)[0]].parser.format_help())

    def keep(self, value: object) -> None:
        """Hold the cell's last value until its recording has ended."""
        self._value = value

    def take(self) -> object:
        """Returns the held value and lets go of it."""
        value, self._value = self._value, None
        return value


def split_line(line: str) -> tuple[str, str]:
    """Returns the verb and option text of a `%%verb options` line."""
    name, *options = line[2:].split(maxsplit=1) or [""]
    return name, "".join(options).strip()


def marker_text(line: str, *, as_string: bool) -> str:
    """Returns the source of the marker for `line`, a string literal, so that `from __future__` imports may follow."""
    call = f"{NAME}({line.strip()!r})"
    return f"{call!r}\n" if as_string else f"{call}\n"


def marked_line(statement: ast.stmt) -> str | None:
    """Returns the `%%verb` line that `statement` stands for; None if it is not a marker."""
    match statement:
        case ast.Expr(value=ast.Constant(value=str(text))) if text.startswith(f"{NAME}("):
            return marked_line(ast.parse(text).body[0])
        case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str(line))])) if name == NAME:
            return line
    return None


def install(marker: Marker) -> None:
    """Make the marker reachable from every cell."""
    setattr(builtins, NAME, marker)


def remove() -> None:
    """Undo install()."""
    if hasattr(builtins, NAME):
        delattr(builtins, NAME)
