"""Registers the tests of kinds: which cases they are for, and the order in which they are tried."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import walk_packages

from nbkit.analysis.align.kinds.case import Case
from nbkit.analysis.align.region import Kind

# A kind for a candidate that explains the difference, null for one that does not.
Kinds = Iterator[Kind | None]


@dataclass(frozen=True)
class KindTest:
    """Holds the name of a kind, its rank, the test of its candidates, and for which cases that is."""

    name: str
    rank: int
    find: Callable[[Case], Kinds]
    is_for: Callable[[Case], object]

    def __call__(self, case: Case) -> Kind | None:
        """Returns the first kind that explains a difference; null where none does, or the test is not for this case."""
        return next(filter(None, self.find(case)), None) if self.is_for(case) else None


TESTS: list[KindTest] = []


def kind_test(
    name: str, rank: int, is_for: Callable[[Case], object] = lambda case: case.is_comparable
) -> Callable[[Callable[[Case], Kinds]], KindTest]:
    """Registers a function as a test of a kind; those of a lower rank come first, from special to general."""

    def decorate(find: Callable[[Case], Kinds]) -> KindTest:
        TESTS.append(KindTest(name, rank, find, is_for))
        return TESTS[-1]

    return decorate


@cache
def kind_tests() -> tuple[KindTest, ...]:
    """Returns the tests of all modules of this folder, in the order in which they are tried."""
    package = __name__.rpartition(".")[0]
    for module in walk_packages(import_module(package).__path__, f"{package}."):
        import_module(module.name)
    return tuple(sorted(TESTS, key=lambda one: one.rank))
