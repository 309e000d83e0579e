"""What a run of the tests gets: processes to fork from, a collection in tiers, a table of times."""

import gc
import os
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

from tests.processes import prepare
from tests.tiers import ordered, seconds_by_folder, tiered, write_slow


def pytest_configure(config: pytest.Config) -> None:
    """Forked processes for the tests; the workers of one run share a server. What starts workers imports no torch."""
    if not hasattr(config, "workerinput"):
        config.add_cleanup(prepare().cleanup)
    if not getattr(config.option, "numprocesses", None):
        config.pluginmanager.import_plugin("tests.fixtures")


def import_share(config: pytest.Config, workerid: str, workercount: int) -> None:
    """Imports every n-th test file first, in each of n workers another one.

    In a new clone that rewrites their asserts, and keeps what it made: 20 s of work that each worker would do alone.
    """
    files = sorted(file for given in config.args for file in Path(given).rglob("test_*.py"))
    for file in files[int(workerid.removeprefix("gw")) :: workercount]:
        with suppress(Exception, pytest.skip.Exception):  # the collection says what is wrong
            import_module(".".join(file.resolve().relative_to(config.rootpath).with_suffix("").parts))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """A collection of tests makes what stays: to look for garbage in it takes long and finds nothing."""
    gc.disable()
    try:
        if worker := getattr(session.config, "workerinput", None):
            import_share(session.config, worker["workerid"], worker["workercount"])
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before a choice by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tiered(items)
    ordered(items)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [each for group in terminalreporter.stats.values() for each in group if hasattr(each, "duration")]
    if "NBKIT_SLOW_TESTS" in os.environ:
        write_slow(reports)
    if os.environ.get("CI") == "true":
        terminalreporter.section("seconds by folder")
        for line in seconds_by_folder(reports):
            terminalreporter.write_line(line)
