"""Headless Chromium for what is measured in a page: the one of the browser tests, started as they start it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

from tests.browser.conftest import ARGUMENTS, NAMES


def installed() -> str | None:
    """Where Chromium is; None if it is not there."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser, which is closed at the end. Ends the program if there is none."""
    path = installed()
    if path is None:
        raise SystemExit("Chromium is not there; install it (Debian package chromium).")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield started
        started.close()
