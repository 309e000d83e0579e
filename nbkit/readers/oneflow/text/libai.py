"""Reads lines of LiBai's logger: training metrics, and the time of the log's own clock."""

import re
from datetime import datetime, timedelta
from typing import Any

LINE = re.compile(r"\[(\d\d)/(\d\d) (\d\d):(\d\d):(\d\d)(?: [^\]]{0,80})?\]:? ?")
FORMATTED = re.compile(r"[\w.]{1,80} (?:INFO|WARNING|ERROR|DEBUG): ")
ITERATION = re.compile(r"iteration: (\d{1,15})(?:/(\d{1,15}))?")
ETA = re.compile(r"eta: (?:(\d{1,6}) days?, )?(\d{1,3}):(\d\d):(\d\d)")
VALUE = re.compile(r"\b([A-Za-z_][\w.]{0,60}(?: samples)?): ([-+]?(?:\d[\d.]*(?:e[-+]?\d+)?|inf|nan))", re.ASCII)
# How LiBai averages what it prints.
NAMES = {
    "consumed_samples": "consumed_samples",
    "consumed samples": "consumed_samples",
    "time": "time (s/iter, average of all)",
    "data_time": "data_time (s/iter, average of the last 20)",
    "total_throughput": "throughput (samples/s)",
    "lr": "lr",
    "max_mem": "max_mem (MB)",
}
LEAP_YEAR = 1904
HALF_A_YEAR = timedelta(days=183)


class Metrics:
    """Holds rows of metrics; `iterations` is how many the run was to have, if it says so."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.events = 0
        self.iterations: int | None = None
        self.begin: datetime | None = None
        self._rank: str | None = None

    def seen(self, at: datetime | None) -> None:
        """Notes that a line was written at that time; the first one begins the clock."""
        if self.begin is None and at is not None:
            self.begin = at.replace(year=LEAP_YEAR)

    def line(self, text: str, rank: str | None) -> bool:
        """Takes a line of LiBai's logger; returns False if it is none."""
        match = LINE.match(text)
        if match is None:
            return False
        at = _at(*map(int, match.groups()))
        self.seen(at)
        message = text[match.end() :]
        if formatted := FORMATTED.match(message):
            message = message[formatted.end() :]
        iteration = ITERATION.search(message)
        # Every rank may print its own; one is enough.
        if iteration and (not self.events or rank == self._rank):
            self._rank = rank
            self._event(int(iteration[1]), message[: iteration.start()], message[iteration.end() :], at)
            self.iterations = int(iteration[2]) if iteration[2] else self.iterations
        return True

    def _event(self, step: int, front: str, message: str, at: datetime | None) -> None:
        self.events += 1
        time_us = self._since(at)
        values: dict[str, float | None] = {}
        if eta := ETA.search(front):
            days, hours, minutes, seconds = (int(part or 0) for part in eta.groups())
            values["eta (s)"] = float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
        for name, value in VALUE.findall(message):
            known = f"{name} (median of the last 200)" if "loss" in name else NAMES.get(name)
            if known is not None:
                values.setdefault(known, _number(value))
        self.rows += [
            {"step": step, "name": name, "value": value, "time_us": time_us}
            for name, value in values.items()
            if value is not None
        ]

    def _since(self, at: datetime | None) -> float | None:
        if at is None or self.begin is None:
            return None
        passed = at - self.begin
        if passed < -HALF_A_YEAR:  # the lines have no year, and a new one has begun
            passed = at.replace(year=LEAP_YEAR + 1) - self.begin if (at.month, at.day) != (2, 29) else passed
        return passed.total_seconds() * 1e6


def _at(month: int, day: int, hour: int, minute: int, second: int) -> datetime | None:
    try:
        return datetime(LEAP_YEAR, month, day, hour, minute, second)
    except ValueError:
        return None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
