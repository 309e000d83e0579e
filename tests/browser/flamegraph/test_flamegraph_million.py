"""The flame graph over 1,000,000 frames: everything reachable and nothing that stalls. bench/ measures the budgets."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.flame_page import FlamePage
from tests.browser.work import work

COUNT = 1_000_000
# Of CPU time, and much more than the budget, so that only a real stall fails, on any machine.
PATIENCE_S = 3.0


@pytest.fixture(scope="module")
def million(chromium: Browser) -> Iterator[FlamePage]:
    page = chromium.new_page(viewport={"width": 1000, "height": 900})
    page.emulate_media(reduced_motion="reduce")
    yield FlamePage(page, COUNT)
    page.close()


def test_search_answers_quickly(million: FlamePage) -> None:
    found = million.page.locator(".nb-found")
    acts = lambda: million.search.fill("softmax"), lambda: expect(found).to_contain_text("matches")
    assert work(million.page, "search", *acts) < PATIENCE_S
    million.search.fill("")


def test_the_last_frame_is_revealed(million: FlamePage) -> None:
    assert work(million.page, "reveal", lambda: million.select_from_python(COUNT - 1)) < PATIENCE_S
    expect(million.page.get_by_role("treeitem")).to_contain_text("depth")
    million.select_from_python(None)
    million.press("0")


def test_views_are_built_and_keep_all_time(million: FlamePage) -> None:
    for group in ("by module", "by op", "by phase", "calls"):
        assert work(million.page, group, lambda group=group: million.choose("Group", group)) < PATIENCE_S
    assert work(million.page, "left heavy", lambda: million.choose("Order", "left heavy")) < PATIENCE_S
    million.press(*["ArrowUp"] * 11)
    expect(million.status).to_contain_text("step, 10.0 s, 100.0 % of all host time")
    million.press("1")


def test_the_table_draws_some_hundred_rows_at_most(million: FlamePage) -> None:
    million.press("t")
    assert 10 < million.page.locator(".nb-flame-table tbody tr").count() <= 300
    million.press("t")
