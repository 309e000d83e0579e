"""Selects the recorded rows that the op and module filters let through."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbkit.capture.frames.string_columns import followed
from nbkit.patterns import Matcher, Patterns, module_matcher, op_matcher, selects, split_patterns


@dataclass(frozen=True)
class Selection:
    """Holds op and module patterns, compiled; an unset one lets everything through.

    With `backward` a row is wanted, too, where the forward op is whose gradient it computes.
    """

    ops: Patterns = None
    exclude_ops: Patterns = None
    modules: Patterns = None
    exclude_modules: Patterns = None
    backward: bool = False

    def __post_init__(self) -> None:
        self.op_matchers(), self.module_matcher()  # a bad pattern is refused here, before anything runs

    def set_options(self) -> dict[str, str]:
        """Returns the options that were set, as text."""
        options = {name: value if isinstance(value, str) else ",".join(value) for name, value in self._patterns()}
        return options | ({"backward": "True"} if self.backward else {})

    def _patterns(self) -> list[tuple[str, Any]]:
        """Returns the options that name ops and modules and were set."""
        return [(name, value) for name, value in vars(self).items() if name != "backward" and value is not None]

    def op_matchers(self) -> tuple[Matcher | None, Matcher | None]:
        """Returns matchers of wanted and unwanted op names; None where no pattern was set."""
        return _if_set(self.ops, op_matcher(self.ops)), _if_set(self.exclude_ops, op_matcher(self.exclude_ops))

    def module_matcher(self) -> Matcher | None:
        """Returns the matcher of wanted module paths; None where no pattern was set."""
        if self.modules is None and self.exclude_modules is None:
            return None
        return selects(
            _if_set(self.modules, module_matcher(self.modules)),
            _if_set(self.exclude_modules, module_matcher(self.exclude_modules)),
        )

    def unmet(self, names: Iterable[str], paths: Iterable[str]) -> list[str]:
        """Returns a sentence for each pattern that fits none of the ops, or none of the modules, that ran.

        One, too, for a choice without any, such as ops="", which nothing fits.
        """
        kinds = {"op": (op_matcher, list(names)), "module": (module_matcher, list(paths))}
        sentences = []
        for option, patterns in self._patterns():
            noun = "module" if option.endswith("modules") else "op"
            matcher, ran = kinds[noun]
            if option == f"{noun}s" and not split_patterns(patterns):
                sentences.append(f"{option}={patterns!r} names no {noun}: nothing was chosen.")
            for pattern in split_patterns(patterns):
                if not any(map(matcher([pattern]), ran)):
                    sentences.append(f"{option}={pattern!r} fits no {noun} that ran.")
        return sentences

    def rows(
        self,
        name_code: np.ndarray,
        names: list[str],
        parent: np.ndarray,
        module: np.ndarray,
        paths: list[str],
        forward: np.ndarray,
    ) -> np.ndarray:
        """Returns whether each row is wanted: by its own name or that of a call above it, and by its module.

        `forward` is the row of the forward op whose gradient it computes, -1 without one.
        """
        include, exclude = self.op_matchers()
        wanted, allowed = np.ones(len(name_code), dtype=bool), np.ones(len(name_code), dtype=bool)
        if include is not None:
            wanted &= _with_parents(np.array([include(name) for name in names], dtype=bool)[name_code], parent)
        if exclude is not None:
            allowed = ~_with_parents(np.array([exclude(name) for name in names], dtype=bool)[name_code], parent)
            wanted &= allowed
        matches_module = self.module_matcher()
        if matches_module is not None:
            # One more entry answers for rows outside any module (number -1).
            wanted &= np.array([*map(matches_module, paths), self.modules is None], dtype=bool)[module]
        if self.backward:
            wanted |= allowed & wanted[followed(np.where(forward < 0, np.arange(len(forward)), forward))]
        return wanted


def _if_set(patterns: Patterns, matcher: Matcher) -> Matcher | None:
    return None if patterns is None else matcher


def _with_parents(matches: np.ndarray, parent: np.ndarray) -> np.ndarray:
    is_last = matches | (parent < 0)
    with_parents: np.ndarray = matches[followed(np.where(is_last, np.arange(len(matches)), parent))]
    return with_parents
