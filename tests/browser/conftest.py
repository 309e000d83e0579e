"""Fixtures of the browser tests: one headless Chromium and one page of it for each worker, emptied after each test."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Page, Request, ViewportSize, expect, sync_playwright

from tests.browser import jupyterlab

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
# A new page takes half a second, an emptied one a twentieth.
PAGES: list[Page] = []
VIEWPORT: ViewportSize = {"width": 1000, "height": 900}


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
        jupyterlab.SHARED.close()
        RUNNING.clear()
        PAGES.clear()


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """An empty page; a test that needs settings which cannot be taken back makes a context of its own."""
    requests: list[str] = []
    errors: list[str] = []
    if not PAGES:
        PAGES.append(chromium.new_context(viewport=VIEWPORT).new_page())
    page = PAGES[0]

    def note_request(request: Request) -> None:
        requests.append(request.url)

    def note_error(error: Error) -> None:
        errors.append(str(error))

    page.on("request", note_request)
    page.on("pageerror", note_error)
    try:
        yield page
    finally:
        try:
            _empty(page)
        except Error:  # it crashed or hangs: the test has said so
            PAGES.clear()
        page.remove_listener("request", note_request)
        page.remove_listener("pageerror", note_error)
    assert errors == []
    assert [url for url in requests if not url.startswith(("blob:", "data:", "about:", "file:"))] == []


def _empty(page: Page) -> None:
    """Takes back what a test did to a page."""
    page.mouse.move(0, 0)
    page.goto("about:blank")
    page.set_viewport_size(VIEWPORT)
    page.emulate_media(media="null", color_scheme="null", reduced_motion="null")
    page.context.clear_permissions()
