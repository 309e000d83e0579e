"""Reads what a log says beside its graphs: passes, sets of AMP, memory, variables, times, errors."""

import re
from datetime import datetime
from typing import Any

from nbkit.readers.oneflow.text.memory import Memory
from nbkit.readers.text_proto import finite

PASS = re.compile(r"(\S+) (start|finish) compiling with pass (?:pass_cnt_(\d{1,9})-)?(\S+)")
ELAPSED = re.compile(r"Graph name: (\S+) (\S+) time elapsed: (\d{1,15}) milliseconds")
COMPILED = re.compile(r"Graph name: (\S+) compile time: (\S+) seconds")
JOB_VARIABLE = " created in JobPass"
DONE = re.compile(r"(?:\. )?(.{1,80}?) Done! (?:Cost|cost) time: ([\d.e+-]{1,20})s")
TOTAL = re.compile(r".{0,3}total time to build graph and plan ?: ([\d.e+-]{1,20})s")
FAILED = "got error"
BUILDING = "building graph"


def moment(date: str, time: str) -> datetime | None:
    """Returns when a line was written; one without a year is of 1904, a leap year. None if it is no date."""
    try:
        return datetime.strptime(f"{date if len(date) == 8 else '1904' + date} {time[:15]}", "%Y%m%d %H:%M:%S.%f")
    except ValueError:
        return None


class Facts:
    """Holds side records of the log, as JSON data."""

    def __init__(self) -> None:
        self.passes: list[dict[str, Any]] = []
        self.sets: list[dict[str, Any]] = []
        self.memory = Memory()
        self.job_variables: dict[str, list[str]] = {}
        self.compile_seconds: dict[str, float] = {}
        self.actor_threads = 0
        self.in_place: list[str] = []
        self.gradient_accumulation: list[str] = []
        self._started: dict[tuple[str | None, str, str], datetime] = {}

    def pass_line(self, message: str, at: datetime | None, thread: str | None = None) -> bool:
        """Takes a line on a compiler pass, of a thread; returns False if it is none."""
        if elapsed := ELAPSED.match(message):
            self._pass(elapsed[1], None, elapsed[2], int(elapsed[3]) / 1000)
            return True
        match = PASS.match(message)
        if match is None:
            return False
        graph, word, number, name = match.groups()
        key = (thread, graph, f"{number}-{name}")
        if word == "start":
            if at is not None:
                self._started[key] = at
            return True
        began = self._started.pop(key, None)
        seconds = (at - began).total_seconds() if at is not None and began is not None else None
        self._pass(graph, None if number is None else int(number), name, seconds)
        return True

    def unfinished(self) -> list[str]:
        """Returns passes that began and never ended."""
        return [name for *_, name in self._started]

    def _pass(self, graph: str, number: int | None, name: str, seconds: float | None) -> None:
        self.passes.append({"graph": graph, "number": number, "name": name, "seconds": seconds})

    def compiled(self, message: str) -> bool:
        """Takes how long a graph took to compile; returns False if the line does not say it."""
        match = COMPILED.match(message)
        if match is not None:
            self.compile_seconds[match[1]] = finite(match[2]) or 0.0
        return match is not None

    def job_variable(self, graph: str, text: str) -> None:
        """Notes a variable that a pass made, and for which the framework made a tensor."""
        self.job_variables.setdefault(graph, []).append(text.partition("op: ")[2].partition(JOB_VARIABLE)[0])


class Stages:
    """Holds seconds of the stages of each graph, in the words of the log, each time that one was finished."""

    def __init__(self) -> None:
        self.seconds: list[dict[str, Any]] = []
        self.failed: list[tuple[int, str]] = []

    def line(self, number: int, graph: str, text: str) -> bool:
        """Takes what is said behind "(GRAPH:name:Class) "; returns whether its building has ended with that."""
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
