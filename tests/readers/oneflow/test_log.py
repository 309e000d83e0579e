"""What a log counts over all of its streams."""

from datetime import datetime

from nbkit.readers.oneflow.log.log import MOST_ERRORS, Log
from nbkit.readers.oneflow.text.lines import Glog


def head(date: str, time: str = "10:11:12.5", thread: str = "7") -> Glog:
    return Glog("I", date, time, thread, "a.cpp:3", "text")


def test_lines_are_counted_and_the_first_time_begins_the_clock() -> None:
    log = Log()
    log.count(head("20239902"))
    assert (log.created, log.metrics.begin) == (None, None)
    log.count(head("20230102"))
    log.count(head("20230103", thread="8"))
    assert (log.glog_lines, log.sites, log.threads) == (3, {"a.cpp:3": 3}, {"7": 2, "8": 1})
    assert log.created == "2023-01-02T10:11:12.500000"
    assert log.metrics.begin == datetime(1904, 1, 2, 10, 11, 12, 500_000)


def test_a_time_without_a_year_is_no_date() -> None:
    log = Log()
    log.count(head("0102"))
    assert log.created is None
    assert log.metrics.begin == datetime(1904, 1, 2, 10, 11, 12, 500_000)


def test_the_first_errors_and_what_the_end_cut_are_kept() -> None:
    log = Log()
    for line in range(MOST_ERRORS + 5):
        log.error(line, f"error {line}")
    assert len(log.errors) == 100
    assert log.errors[-1] == (99, "error 99")
    assert not log.is_cut
    log.cut(7, "op a")
    assert log.is_cut
    assert log.skipped.rows == [{"line": 7, "text": "op a", "reason": "the log ends before this record does"}]
