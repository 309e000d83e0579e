"""The diff table under 300 random actions, twice: it says nothing, and holds no more the second time."""

import pytest
from playwright.sync_api import Browser

from tests.browser.diff_page import DiffPage
from tests.browser.op_table.test_op_table_soak import KEYS
from tests.browser.soak import Soaked, soak
from tests.support.diff_traces import faulty_trace, large_diffs

TRACES = {"values, plots": faulty_trace, "10,000 tensors": lambda: large_diffs(10_000)}


@pytest.mark.parametrize(("name", "actions"), [*zip(TRACES, (300, 100, 100), strict=False)])
def test_it_says_nothing_and_holds_no_more(chromium: Browser, name: str, actions: int) -> None:
    page = chromium.new_page(viewport={"width": 1000, "height": 900})
    shown = DiffPage(page, TRACES[name]())
    search = shown.diff.get_by_role("textbox", name="Filter op", exact=True)
    grid = shown.diff.locator(".nb-grid")
    held = soak(Soaked(shown.diff, grid, search, KEYS, ("*mm*", "aten.add", "mm(", "zzz")), actions=actions)
    page.close()
    assert held.messages == []
    assert held.grown() == []
