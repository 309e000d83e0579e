"""Finds what one comes to from some things of a graph, from each to the next: all that is made of a tensor, say."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

Thing = TypeVar("Thing", bound=Hashable)


def reachable(starts: Iterable[Thing], onward: Callable[[Thing], Iterable[Thing]]) -> Iterator[Thing]:
    """Yields these things and all that they lead to, each once, the nearest first.

    `onward` returns what is next to a thing: nothing where one goes no further. It is asked of each when the one after
    it is wanted.
    """
    met = dict.fromkeys(starts)
    waiting = [*met]
    for thing in waiting:
        yield thing
        for other in onward(thing):
            if other not in met:
                met[other] = None
                waiting.append(other)
