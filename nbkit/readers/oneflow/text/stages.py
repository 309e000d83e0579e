"""Lines on the stages of building a graph: how long they took, and which one failed."""

import re
from typing import Any

from nbkit.readers.oneflow.memory import finite

DONE = re.compile(r"(?:\. )?(.{1,80}?) Done! (?:Cost|cost) time: ([\d.e+-]{1,20})s")
TOTAL = re.compile(r".{0,3}total time to build graph and plan ?: ([\d.e+-]{1,20})s")
FAILED = "got error"
BUILDING = "building graph"


class Stages:
    """Seconds of the stages of each graph, in the words of the log, each time that one was finished."""

    def __init__(self) -> None:
        self.seconds: list[dict[str, Any]] = []
        self.failed: list[tuple[int, str]] = []

    def line(self, number: int, graph: str, text: str) -> bool:
        """What is said behind "(GRAPH:name:Class) "; whether its building has ended with that."""
        if FAILED in text:
            self.failed.append((number, text))
            return text.startswith(BUILDING)
        if done := DONE.match(text):
            self._add(graph, done[1], done[2])
            return done[1] == BUILDING
        if total := TOTAL.match(text):
            self._add(graph, "total", total[1])
        return text.startswith("end building graph.")

    def _add(self, graph: str, stage: str, seconds: str) -> None:
        self.seconds.append({"graph": graph, "stage": stage, "seconds": finite(seconds)})
