"""The op table without a mouse: one way in, arrows inside, everything reachable."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.table_page import TablePage
from tests.support.fakes import fake_trace, small_trace


@pytest.fixture
def small(page: Page) -> TablePage:
    return TablePage(page, small_trace())


def press(shown: TablePage, *keys: str) -> None:
    for key in keys:
        shown.page.keyboard.press(key)


def test_tab_order_is_modules_search_choices_tree_filters_rows(small: TablePage) -> None:
    small.page.get_by_role("button", name="Modules").focus()
    reached = []
    for _ in range(9):
        press(small, "Tab")
        reached.append(small.focused()["role"])
    assert reached == ["input", "select", "select", "select", "button", "button", "button", "treeitem", "input"]
    press(small, *["Tab"] * 12)
    assert small.focused() == {"role": "gridcell", "row": "3", "column": "0", "text": "0"}


def test_arrows_move_between_cells_and_up_to_the_header(small: TablePage) -> None:
    small.filter("op").focus()
    press(small, "ArrowDown", "ArrowDown", "ArrowRight")
    assert small.focused() == {"role": "gridcell", "row": "4", "column": "2", "text": "40.0 µs"}
    press(small, "ArrowUp", "ArrowUp")
    assert small.focused()["role"] == "columnheader"
    press(small, "Enter")
    expect(small.header("self time")).to_have_attribute("aria-sort", "descending")
    press(small, "End")
    assert small.focused()["column"] == "11"


def test_enter_selects_and_escape_closes(small: TablePage) -> None:
    small.filter("op").focus()
    press(small, "ArrowDown", "ArrowDown", "ArrowDown", "Enter")
    small.page.get_by_role("heading", name="#2 aten.relu.default").wait_for()
    assert small.table.selected_op_id == 2
    press(small, "Escape")
    expect(small.page.get_by_role("region", name="Selected op")).to_be_hidden()
    assert small.focused()["row"] == "5"


def test_page_keys_and_control_end_reach_the_last_row(page: Page) -> None:
    shown = TablePage(page, fake_trace(100_000))
    shown.filter("op").focus()
    press(shown, "ArrowDown", "PageDown", "PageDown")
    assert 25 < int(shown.focused()["row"]) < 40
    press(shown, "Control+End")
    expect(shown.row(99_999).locator("[data-name='op_id']")).to_have_text("99999")
    assert shown.focused()["row"] == "100002"
    press(shown, "Control+Home")
    assert shown.focused() == {"role": "gridcell", "row": "3", "column": "0", "text": "0"}


def test_focus_survives_when_its_row_scrolls_out_of_view(page: Page) -> None:
    shown = TablePage(page, fake_trace(10_000))
    shown.row(2).click()
    shown.page.mouse.wheel(0, 20_000)
    expect(shown.row(2)).to_have_count(0)
    assert shown.focused()["role"] == "grid"
    press(shown, "ArrowDown")
    assert shown.focused()["row"] == "6"


def test_tree_keys_move_open_close_and_choose(page: Page) -> None:
    shown = TablePage(page, fake_trace(900, layers=3))
    shown.page.get_by_role("treeitem", name="All ops").focus()
    press(shown, "ArrowDown", "ArrowDown")
    assert shown.focused()["text"].startswith("blocks")
    press(shown, "ArrowLeft")
    expect(shown.page.get_by_role("treeitem", name="blocks")).to_have_attribute("aria-expanded", "false")
    press(shown, "ArrowRight", "ArrowRight", "2")
    assert shown.focused()["text"].startswith("2")
    press(shown, "Enter")
    shown.page.locator(".nb-count", has_text=" of 900 ops").wait_for()
    assert shown.page.get_by_role("treeitem", selected=True).inner_text().startswith("2")
    press(shown, "Home", "Enter")
    shown.wait_for_count("900 ops")


def test_what_is_typed_while_rows_come_stays(small: TablePage) -> None:
    small.page.evaluate("""() => {
      const [search, level] = [document.querySelector(".nb-search"), document.querySelector(".nb-tools select")];
      search.value = "relu";
      search.dispatchEvent(new Event("input"));
      level.value = "aten";
      level.dispatchEvent(new Event("change"));
    }""")
    small.wait_for_count("1 of 8 ops")
    expect(small.page.get_by_role("searchbox")).to_have_value("relu")


def test_search_applies_at_enter(small: TablePage) -> None:
    small.page.get_by_role("searchbox").focus()
    press(small, *"relu", "Enter")
    small.wait_for_count("1 of 8 ops")
    expect(small.page.get_by_role("status")).to_have_text("1 of 8 ops shown, self time 5.00 µs")
