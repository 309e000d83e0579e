"""Fixtures of the browser tests: one headless Chromium for each worker, a fresh page for each test."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

HERE = Path(__file__).parent
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
# As long as Playwright's other waits: only what never comes fails, however loaded the machine is.
expect.set_options(timeout=30_000)


def needed(path: str | Path | None, what: str) -> Path:
    """The path of something the tests need; without it they skip, and fail in CI, where it must be installed."""
    found = Path(path) if path else None
    if found is not None and found.exists():
        return found
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is not there, and in CI it must be.")
    pytest.skip(f"{what} is not there.")


SHARED = ExitStack()
RUNNING: list[Browser] = []


@pytest.fixture(scope="module")
def chromium() -> Browser:
    """The Chromium of this worker, which ends when a test of another folder comes."""
    if not RUNNING:
        path = needed(next(filter(None, map(shutil.which, NAMES)), None), "Chromium (Debian package chromium)")
        playwright = SHARED.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=str(path), args=list(ARGUMENTS))
        SHARED.callback(browser.close)
        RUNNING.append(browser)
    return RUNNING[0]


# Not per session: while Playwright runs, its event loop is this thread's, and asyncio.run() fails elsewhere.
@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    yield
    if nextitem is None or HERE not in nextitem.path.parents:
        SHARED.close()
        RUNNING.clear()


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 1000, "height": 900})
    requests: list[str] = []
    errors: list[str] = []
    page = context.new_page()
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    context.close()
    assert errors == []
    assert [url for url in requests if not url.startswith(("blob:", "data:", "about:", "file:"))] == []
