"""Matches names: plain names are literal, `*`, `?` and `[...]` make a glob, `re:` starts a regular expression."""

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import translate

from nbkit.errors import PatternError

Patterns = str | Sequence[str] | None
Matcher = Callable[[str], bool]


def split_patterns(patterns: Patterns) -> list[str]:
    """Returns single patterns of a comma-separated text or a sequence, blanks around them removed.

    A text that starts with `re:` is one regular expression, commas and all.
    """
    if patterns is None:
        return []
    if isinstance(patterns, str):
        patterns = [patterns] if patterns.lstrip().startswith("re:") else patterns.split(",")
    if not isinstance(patterns, Iterable):
        patterns = [patterns]  # which the next line refuses
    if not_text := [pattern for pattern in patterns if not isinstance(pattern, str)]:
        raise PatternError(f"A pattern is text, not {not_text[0]!r}; give a name, a glob or 're:' and a regex.")
    return [pattern.strip() for pattern in patterns if pattern.strip()]


def op_matcher(patterns: Patterns) -> Matcher:
    """Returns whether an op's name fits one of the patterns.

    A name fits whole, without its overload, or by its last parts: `aten.add.Tensor` fits `aten.add.Tensor`,
    `aten.add` and `add`; `torch.nn.functional.linear` fits `linear`. Raises PatternError on a bad pattern.
    """
    matches = [_compile(pattern) for pattern in split_patterns(patterns)]
    return lambda name: any(match(form) for form in _op_forms(name) for match in matches)


def module_matcher(patterns: Patterns) -> Matcher:
    """Returns whether a module path, or a module that holds it, fits one of the patterns. Raises PatternError."""
    matches = [_compile(pattern) for pattern in split_patterns(patterns)]
    return lambda path: any(match(form) for form in _holders(path) for match in matches)


def path_matcher(patterns: Patterns) -> Matcher:
    """Returns whether a module path itself fits one of the patterns. Raises PatternError on a bad pattern."""
    matches = [_compile(pattern) for pattern in split_patterns(patterns)]
    return lambda path: any(match(path) for match in matches)


def selects(include: Matcher | None, exclude: Matcher | None) -> Matcher:
    """Returns whether a name is included (None: all are) and not excluded (exclusion wins)."""
    return lambda name: (include is None or include(name)) and not (exclude is not None and exclude(name))


def _compile(pattern: str) -> Callable[[str], bool]:
    if pattern.startswith("re:"):
        try:
            compiled = re.compile(pattern[3:])
        except re.error as error:
            raise PatternError(
                f"{pattern!r} is not a regular expression: {error}; mend it, or leave 're:' out for a literal name."
            ) from error
    elif any(character in pattern for character in "*?["):
        compiled = re.compile(translate(pattern))
    else:
        return pattern.__eq__
    return lambda name: compiled.fullmatch(name) is not None


def _op_forms(name: str) -> Iterable[str]:
    parts = name.split(".")
    yield name
    # Only aten-style names carry an overload as their third part: namespace.packet.overload.
    bare = parts[:-1] if len(parts) == 3 and parts[0] != "torch" else parts
    for start in range(len(bare)):
        yield ".".join(bare[start:])


def _holders(path: str) -> Iterable[str]:
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        yield ".".join(parts[:end])
