"""Holds what was read so far of a log, over the streams of all ranks."""

from collections import Counter

from nbkit.readers.oneflow.log.store import Graphs
from nbkit.readers.oneflow.text.facts import Facts, Stages, moment
from nbkit.readers.oneflow.text.libai import Metrics
from nbkit.readers.oneflow.text.lines import Glog
from nbkit.readers.oneflow.text.operator_line import OperatorLines
from nbkit.readers.oneflow.text.settings import Settings
from nbkit.readers.skipped_lines import SkippedLines

MOST_ERRORS = 100


class Log:
    """Holds everything that a log said; the streams fill it."""

    def __init__(self) -> None:
        self.graphs = Graphs()
        self.facts = Facts()
        self.metrics = Metrics()
        self.settings = Settings()
        self.stages = Stages()
        self.skipped = SkippedLines()
        self.operators = OperatorLines()
        self.glog_lines = 0
        self.sites: Counter[str] = Counter()
        self.threads: Counter[str] = Counter()
        self.tree_lines: dict[str, Counter[str]] = {"built": Counter(), "listed": Counter()}
        self.errors: list[tuple[int, str]] = []
        self.is_cut = False
        self.created: str | None = None

    def count(self, head: Glog) -> None:
        """Counts a glog line."""
        self.glog_lines += 1
        self.sites[head.site] += 1
        self.threads[head.thread] += 1
        if self.created is None and (at := moment(head.date, head.time)) is not None:
            self.created = at.isoformat() if len(head.date) == 8 else None
            self.metrics.seen(at)

    def cut(self, line: int, text: str) -> None:
        """Notes that the log ends in the middle of the record that began at this line."""
        self.is_cut = True
        self.skipped.add(line, text, "the log ends before this record does")

    def error(self, line: int, text: str) -> None:
        """Adds a line that says why the run ended, or what failed in it."""
        if len(self.errors) < MOST_ERRORS:
            self.errors.append((line, text))
