"""The diff table without a mouse, in light and dark, in narrow places, and under axe-core's accessibility rules."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.diff_page import DiffPage
from tests.browser.op_table.test_op_table_looks import DARK, LIGHT, SET_THEME, violations
from tests.support.diff_traces import faulty_trace

TICK = "getComputedStyle(document.querySelector('#diff .nb-plot svg text')).fill"


def opened(page: Page) -> DiffPage:
    shown = DiffPage(page, faulty_trace())
    shown.row(0).click()
    shown.wait_for_plots()
    return shown


@pytest.mark.parametrize(("is_light", "variables"), [(True, LIGHT), (False, DARK)])
def test_no_accessibility_violation(page: Page, is_light: bool, variables: dict[str, str]) -> None:
    shown = opened(page)
    page.evaluate(SET_THEME, [is_light, variables])
    shown.detail.get_by_role("button", name="Copy script").click()
    expect(shown.detail.get_by_label("Script that runs the op alone")).to_be_visible()
    # One widget of the two: a page of both has their landmarks twice.
    page.evaluate("document.getElementById('table').remove()")
    assert violations(page) == []


def test_the_plots_follow_the_theme(page: Page) -> None:
    opened(page)
    page.evaluate(SET_THEME, [False, DARK])
    page.wait_for_function(f"{TICK} === 'rgba(255, 255, 255, 0.87)'")
    page.evaluate(SET_THEME, [True, LIGHT])
    page.wait_for_function(f"{TICK} === 'rgba(0, 0, 0, 0.87)'")


def test_at_360_pixels_nothing_sticks_out(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    shown = opened(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    expect(shown.diff.get_by_role("tree")).to_be_hidden()
    boxes = [plot.bounding_box() for plot in shown.detail.locator(".nb-plot").all()]
    assert [box["x"] + box["width"] <= 360 for box in boxes if box] == [True, True, True]


@pytest.mark.parametrize("width", [900, 400])
def test_a_verdict_is_not_cut_beside_the_module_tree(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    shown = DiffPage(page, faulty_trace())
    expect(shown.diff.get_by_role("tree")).to_be_visible(visible=width > 800)
    verdict = shown.row(0).locator("[data-name='status']")
    expect(verdict).to_have_text("mismatch")
    assert verdict.evaluate("(cell) => cell.scrollWidth <= cell.clientWidth")


def test_the_noise_ratio_of_a_correct_op_reads_as_a_bound(page: Page) -> None:
    shown = DiffPage(page, faulty_trace())
    expect(shown.row(0)).to_be_visible()
    marks = {}
    for row in shown.diff.locator("[role=row][aria-rowindex]:has([data-status])").all():
        verdict, ratio = (row.locator(f"[data-name='{name}']") for name in ("status", "noise_ratio"))
        if ratio.inner_text() not in ("null", "0"):
            marks[verdict.inner_text()] = ratio.evaluate("(cell) => getComputedStyle(cell, '::before').content")
    assert marks["ok"] == '"≤ "' and marks["mismatch"] == "none"


def test_a_row_is_chosen_and_closed_by_keys(page: Page) -> None:
    shown = DiffPage(page, faulty_trace())
    shown.diff.get_by_label("Filter op", exact=True).focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(shown.detail).to_contain_text("aten.addmm.default")
    assert shown.differences.selected_row == 2
    page.keyboard.press("Escape")
    expect(shown.detail).to_be_hidden()
    assert page.evaluate("document.activeElement.getAttribute('role')") == "gridcell"


def test_tab_goes_from_the_tools_through_the_sliders_to_the_rows(page: Page) -> None:
    shown = DiffPage(page, faulty_trace())
    shown.diff.get_by_role("button", name="Modules").focus()
    reached = []
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.type || document.activeElement.getAttribute('role')"))
    menu = ["select-one", "button", "button", "button"]
    summary = None  # of the details that hold the sliders
    assert reached == ["search", "select-one", "select-one", summary, "range", "range", "range", *menu, "treeitem"]
