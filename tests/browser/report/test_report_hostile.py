"""Names that try to run, to break the page or to hide something, in every place of a report; scripts on and off."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from nbkit.views.report.opreport import opreport
from tests.browser.planted_traces import BROKEN, planted_traces

WIDTH = "document.documentElement.scrollWidth"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "</script><img src=x onerror=window.__pwned=1>.html".replace("/", "_")
    return opreport(*planted_traces(), path=path, title=BROKEN)


@pytest.fixture(params=[(True, 360), (True, 1000), (False, 360)], ids=["narrow", "wide", "without scripts"])
def opened(request: pytest.FixtureRequest, chromium: Browser, report: Path) -> Iterator[Page]:
    runs, width = request.param
    context = chromium.new_context(java_script_enabled=runs, viewport={"width": width, "height": 900})
    page = context.new_page()
    dialogs: list[str] = []
    said: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(report.as_uri())
    yield page
    assert page.evaluate("window.__pwned") is None
    assert (dialogs, said) == ([], [])
    context.close()


def test_nothing_runs_and_nothing_is_wider_than_the_window(opened: Page, request: pytest.FixtureRequest) -> None:
    if "without" not in request.node.callspec.id:
        for number in range(1, 6):
            opened.locator(f"#t{number}").scroll_into_view_if_needed()
            expect(opened.locator(f"#t{number}-op_table .nb-body .nb-row").first).to_be_visible()
    assert opened.evaluate(WIDTH) <= opened.viewport_size["width"]
    assert opened.locator(":is(script, img, iframe, object, embed)").count() == len_of_scripts(opened)


def len_of_scripts(page: Page) -> int:
    """The script of the page, and the data of each panel."""
    return 1 + page.locator(".nbkit-panel").count()
