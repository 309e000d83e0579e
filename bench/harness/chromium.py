"""Headless Chromium for what is measured in a page: the one of the browser tests, started as they start it."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median

from playwright.sync_api import Browser, sync_playwright

from tests.browser.conftest import ARGUMENTS, NAMES


def installed() -> str | None:
    """Returns where Chromium is; None if it is not there."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def browser() -> Iterator[Browser]:
    """Starts a browser and closes it at the end. Ends the program if there is none."""
    path = installed()
    if path is None:
        raise SystemExit("Chromium is not there; install it (Debian package chromium).")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield started
        started.close()


def report(
    what: str,
    times_ms: Sequence[float],
    budget_ms: float | None = None,
    judged: Callable[[Sequence[float]], float] = median,
) -> None:
    """Print the median and the slowest of some times, and whether one of them (`judged`) is within the budget."""
    verdict = ""
    if budget_ms is not None:
        verdict = f"{'ok' if judged(times_ms) <= budget_ms else 'OVER'}, budget {budget_ms:g} ms"
    print(f"  {what:34} {median(times_ms):7.1f} ms, slowest {max(times_ms):7.1f} ms  {verdict}")
