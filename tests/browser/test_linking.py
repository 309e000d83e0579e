"""Flame graph and op table together: what is selected in one shows in the other."""

import pytest
from playwright.sync_api import Page, expect

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
