"""The op table under 300 random actions, twice, also grouped: it says nothing, and holds no more the second time."""

import pytest
from playwright.sync_api import Browser

from nbkit.trace.trace import Trace
from tests.browser.soak import Soaked, soak
from tests.browser.table_page import TablePage
from tests.support.fakes import fake_trace, timed_trace

KEYS = (
    *("ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "Home", "End", "PageDown", "PageUp", "Control+Home"),
    *("Control+End", "Enter", "Shift+Enter", " ", "Escape"),
)
TRACES = {"2,000 ops": lambda: fake_trace(2000, layers=4), "a timed step, grouped by op": timed_trace}


@pytest.mark.parametrize(("name", "actions"), [*zip(TRACES, (300, 100, 100), strict=False)])
def test_it_says_nothing_and_holds_no_more(chromium: Browser, name: str, actions: int) -> None:
    trace: Trace = TRACES[name]()
    page = chromium.new_page(viewport={"width": 1000, "height": 900})
    shown = TablePage(page, trace)
    grid = page.locator(".nb-grid")
    search = page.get_by_role("searchbox", name="Search op, module and source")
    held = soak(Soaked(page.locator("main"), grid, search, KEYS, ("mm", "gelu|add", "mm(", "zzz")), actions=actions)
    assert page.evaluate("window.cleanUp() ?? window.listenerCount()") == 0
    page.close()
    assert shown.unanswered == []
    assert held.messages == []
    assert held.grown() == []
