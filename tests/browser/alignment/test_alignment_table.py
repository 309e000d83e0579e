"""The alignment table: the way to the first divergence, filters, keys, 100,000 rows, narrow places, both themes."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.alignment.alignment_page import AlignmentPage
from tests.browser.op_table.test_op_table_looks import DARK, LIGHT, SET_THEME, violations
from tests.views.alignment.large import large_trace
from tests.views.alignment.makers import aligned_trace


@pytest.mark.parametrize("width", [1000, 500])
def test_a_button_leads_to_the_first_divergence(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    shown = AlignmentPage(page, aligned_trace())
    page.get_by_role("button", name="First divergence").press("Enter")
    expect(shown.detail.locator("h3")).to_have_text("#20 softmax ↔ /Softmax_output_0")
    expect(shown.detail.locator("h3")).to_be_focused()
    expect(shown.selected.locator("[data-name='status']")).to_have_text("diverges first")
    verdict = shown.selected.locator("[data-name='status']")
    assert verdict.evaluate("(cell) => cell.scrollWidth <= cell.clientWidth")
    box, main = shown.selected.bounding_box(), page.locator(".nb-main").bounding_box()
    assert box is not None and main is not None
    assert main["y"] <= box["y"] and box["y"] + box["height"] <= main["y"] + main["height"] + 1
    assert shown.table.selected_row == 20
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_a_divergence_there_is_no_button(page: Page) -> None:
    shown = AlignmentPage(page, aligned_trace(diverge=False))
    expect(page.get_by_role("button", name="First divergence")).to_have_count(0)
    expect(shown.count()).to_have_text("35 rows")


def test_names_of_either_side_are_found(page: Page) -> None:
    shown = AlignmentPage(page, aligned_trace())
    page.get_by_role("searchbox").fill("rotate_half_")
    expect(shown.count()).to_have_text("0 of 35 rows")
    page.get_by_role("searchbox").fill("second_half")
    expect(shown.count()).to_have_text("1 of 35 rows")
    expect(shown.cell(0, "name")).to_have_text("rotate_half")


def test_a_verdict_is_chosen_and_errors_are_sorted(page: Page) -> None:
    shown = AlignmentPage(page, aligned_trace())
    page.get_by_label("verdicts").select_option("inherited")
    expect(shown.count()).to_have_text("9 of 35 rows")
    page.get_by_role("button", name="Clear filters").click()
    page.get_by_role("columnheader", name="local error", exact=True).click()
    expect(shown.cell(0, "name")).to_have_text("softmax")
    expect(shown.cell(1, "name")).to_have_text("gelu_twice")


def test_a_row_is_chosen_and_closed_by_keys(page: Page) -> None:
    shown = AlignmentPage(page, aligned_trace())
    shown.cell(0, "row").click()
    expect(shown.detail).to_be_visible()
    shown.cell(0, "row").press("ArrowDown")
    page.keyboard.press("Enter")
    expect(shown.detail.locator("h3")).to_contain_text("#1 ")
    expect(shown.detail.get_by_role("region", name="Facts of both sides")).to_contain_text("onnx::MatMul_501")
    expect(shown.detail.get_by_role("button", name="Copy script")).to_have_count(0)


def test_a_hundred_thousand_rows_come_in_small_pages(page: Page) -> None:
    shown = AlignmentPage(page, large_trace(100_000))
    page.get_by_role("button", name="First divergence").click()
    expect(shown.selected.locator("[data-name='row']")).to_have_text("50007")
    assert max(shown.sizes) < 50_000


@pytest.mark.parametrize(("is_light", "variables"), [(True, LIGHT), (False, DARK)])
def test_marks_can_be_told_apart_and_nothing_is_hard_to_read(
    page: Page, is_light: bool, variables: dict[str, str]
) -> None:
    shown = AlignmentPage(page, aligned_trace())
    page.evaluate(SET_THEME, [is_light, variables])
    page.get_by_role("button", name="First divergence").click()
    expect(shown.detail).to_be_visible()
    colors = [
        shown.page.locator(f".nb-cell[data-mark='{mark}']:visible").last.evaluate("(e) => getComputedStyle(e).color")
        for mark in "=~-"
    ]
    assert len(set(colors)) == 3
    assert violations(page) == []
