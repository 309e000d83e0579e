"""Notebook finds what the names of a notebook stand for, for line magics."""

from pathlib import Path
from typing import Any

from nbkit.errors import NbkitError, nearest
from nbkit.trace.trace import Trace


class Notebook:
    """Looks up the names of a notebook."""

    def __init__(self, shell: Any) -> None:  # IPython is imported in magics alone
        self._shell = shell

    def trace(self, name: str) -> Trace:
        """Returns the trace of that name. Raises NbkitError if there is none, with the traces there are."""
        names = self._shell.user_ns
        value = names.get(name)
        if isinstance(value, Trace):
            return value
        known = [known_name for known_name, known_value in names.items() if isinstance(known_value, Trace)]
        if name in names:
            raise NbkitError(f"{name} is no trace but a {type(value).__name__}; {_traces(name, known)}")
        raise NbkitError(f"there is no {name!r}; {_traces(name, known)}")

    def trace_or_folder(self, text: str) -> Trace | str:
        """Returns the trace of that name, or the text, where it is the path of a folder. Raises NbkitError."""
        return text if not text.isidentifier() or Path(text).is_dir() else self.trace(text)

    def value(self, name: str) -> object | None:
        """Returns what a name stands for, or an attribute of a name ("model.layers"); null if there is none."""
        first, *attributes = name.split(".")
        value: object | None = self._shell.user_ns.get(first)
        for attribute in attributes:
            value = getattr(value, attribute, None)
        return value

    def source(self, word: str) -> object:
        """Returns what the word stands for: a name first, else the path of something that is there. Or NbkitError."""
        value = self.value(word)
        if value is not None:
            return value
        if Path(word).expanduser().exists():
            return Path(word).expanduser()
        known = nearest(word, self.names()) if word.isidentifier() and self.names() else "give one of these."
        raise NbkitError(f"there is neither a name {word!r} in this notebook nor such a file; {known}")

    def names(self) -> list[str]:
        """Returns the user's own names."""
        hidden = self._shell.user_ns_hidden
        return [name for name in self._shell.user_ns if name not in hidden and not name.startswith("_")]

    def store(self, name: str, value: object) -> None:
        """Gives a value a name; one with "_" before it is hidden, as those of cell magics are."""
        if name.startswith("_"):
            self._shell.user_ns[name] = value
        else:
            self._shell.push({name: value})


def _traces(name: str, known: list[str]) -> str:
    return nearest(name, known) if known else "no trace is there yet: %%optrace -o NAME makes one."
