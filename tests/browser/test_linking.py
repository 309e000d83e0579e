"""Flame graph and op table together: what is selected in one shows in the other."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.linked_page import LinkedPage
from tests.support.fakes import timed_trace


@pytest.fixture
def linked(page: Page) -> LinkedPage:
    linked = LinkedPage(page, timed_trace())
    linked.page.get_by_label("Group by").select_option("no groups")
    expect(linked.count("9 ops")).to_have_text("9 ops")
    return linked


def test_a_selected_frame_leaves_the_ops_inside_it(linked: LinkedPage) -> None:
    linked.choose_frame("Linear")
    expect(linked.count("4 of 9 ops")).to_be_visible()
    assert linked.ops() == ["Linear", "aten.mm.default", "cudaLaunchKernel", "gemm"]
    assert linked.flame.selected_ids().tolist() == [1, 2, 3]


def test_the_table_names_the_frame_and_shows_all_again(linked: LinkedPage) -> None:
    linked.choose_frame("Linear")
    within = linked.page.get_by_role("button", name="show all ops again")
    expect(within).to_contain_text("(4 ops)")
    within.click()
    expect(linked.count("9 ops")).to_have_text("9 ops")
    expect(within).to_be_hidden()
    assert linked.flame.selection is None


def test_clearing_the_filters_ends_the_limit_too(linked: LinkedPage) -> None:
    linked.choose_frame("Linear")
    expect(linked.count("4 of 9 ops")).to_be_visible()
    linked.page.get_by_role("button", name="Clear filters").first.click()
    expect(linked.count("9 ops")).to_have_text("9 ops")


def test_another_frame_takes_the_place_of_the_first(linked: LinkedPage) -> None:
    linked.choose_frame("Linear")
    expect(linked.count("4 of 9 ops")).to_be_visible()
    linked.choose_frame("torch.autograd.backward")
    expect(linked.count("1 of 9 ops")).to_be_visible()
    assert linked.ops() == ["torch.autograd.backward"]


def within(linked: LinkedPage) -> Locator:
    return linked.page.get_by_role("button", name="show all ops again")


def test_a_range_leaves_the_ops_in_it_and_escape_brings_all_back(linked: LinkedPage) -> None:
    # From 27.5 to 38 µs: the module that ends at 35, its mm, and the kernel that began at 30; what encloses them.
    linked.drag_range(0.275, 0.38)
    expect(linked.count("5 of 9 ops")).to_be_visible()
    assert linked.ops() == ["step", "Linear", "aten.mm.default", "cudaLaunchKernel", "gemm"]
    expect(within(linked)).to_contain_text("in range 27.5 µs to 38.0 µs (5 ops)")
    expect(linked.page.get_by_role("region", name="Selected range")).to_contain_text("5 calls, 5 cut by an edge")
    assert linked.table.filtered["op_id"].tolist() == [0, 1, 2, 3, 4]
    linked.page.get_by_role("tree", name="Frames").focus()
    linked.page.keyboard.press("Escape")  # the tooltip of the focus
    linked.page.keyboard.press("Escape")
    expect(linked.count("9 ops")).to_have_text("9 ops")
    expect(within(linked)).to_be_hidden()
    assert len(linked.table.filtered) == 9


def test_a_range_by_keys_leaves_the_filter_text_of_the_table(linked: LinkedPage) -> None:
    search = linked.page.locator("#table").get_by_role("searchbox", name="Search op, module and source")
    search.fill("mm")
    expect(linked.count("3 of 9 ops")).to_be_visible()
    linked.page.get_by_role("tree", name="Frames").focus()
    for key in ("ArrowDown", "Home", "Shift+ArrowRight"):
        linked.page.keyboard.press(key)
    expect(within(linked)).to_contain_text("in range 5.00 µs to 80.0 µs")
    linked.page.keyboard.press("Shift+ArrowLeft")
    expect(linked.count("2 of 9 ops")).to_be_visible()
    assert linked.ops() == ["aten.mm.default", "gemm"] == linked.table.filtered["op"].tolist()
    linked.page.get_by_role("button", name="Clear the range").click()
    expect(linked.count("3 of 9 ops")).to_be_visible()
    expect(search).to_have_value("mm")


def test_showing_all_in_the_table_by_key_clears_the_range_and_keeps_the_focus(linked: LinkedPage) -> None:
    linked.drag_range(0.275, 0.38)
    within(linked).focus()
    linked.page.keyboard.press("Enter")
    expect(linked.count("9 ops")).to_have_text("9 ops")
    expect(linked.page.get_by_role("region", name="Selected range")).to_be_hidden()
    assert linked.flame.selected_range is None
    expect(linked.page.locator("#table .nb-body :focus")).to_have_count(1)


def test_a_range_limits_only_while_time_order_shows_it(linked: LinkedPage) -> None:
    linked.drag_range(0.275, 0.38)
    expect(linked.count("5 of 9 ops")).to_be_visible()
    order = linked.page.get_by_label("Order", exact=True)
    order.select_option(label="left heavy")
    expect(linked.count("9 ops")).to_have_text("9 ops")
    order.select_option(label="time order")
    expect(linked.count("5 of 9 ops")).to_be_visible()


def test_a_frame_in_a_range_takes_its_place_until_it_is_cleared(linked: LinkedPage) -> None:
    linked.drag_range(0.275, 0.6)
    expect(linked.count("7 of 9 ops")).to_be_visible()
    linked.choose_frame("torch.autograd.backward")
    expect(linked.count("1 of 9 ops")).to_be_visible()
    linked.page.get_by_role("button", name="Close the details").click()
    expect(within(linked)).to_contain_text("in range 27.5 µs")


def test_a_row_of_the_table_marks_its_frame(linked: LinkedPage) -> None:
    linked.page.locator("#table .nb-body .nb-row:visible").nth(5).click()
    frame = linked.page.locator("#flame [role=treeitem]")
    expect(frame).to_contain_text("torch.autograd.backward")
    expect(frame).to_have_attribute("aria-selected", "true")
    expect(linked.count("9 ops")).to_have_text("9 ops")


def test_a_frame_of_an_op_in_a_closed_group_opens_it(page: Page) -> None:
    linked = LinkedPage(page, timed_trace())
    expect(linked.count("9 ops in 7 groups")).to_be_visible()
    linked.choose_frame("torch.autograd.backward")
    expect(linked.count("1 of 9 ops in 1 group")).to_be_visible()
    page.evaluate("window.models.table.take('selected_op_id', 5)")
    row = page.locator("#table .nb-body .nb-row:visible[aria-level='2']")
    expect(row).to_contain_text("#5 torch.autograd.backward")
    expect(row).to_have_attribute("aria-selected", "true")
