"""The callers and callees of an op in the flame graph: ways in and out, what is drawn and selected."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.flame_page import FlamePage, training_step

FORWARD, BACKWARD = "#3b8cf6", "#d97706"


@pytest.fixture
def step(page: Page) -> FlamePage:
    page.emulate_media(reduced_motion="reduce")
    return FlamePage(page, training_step())


def test_the_selected_frame_leads_to_callers_and_callees_of_its_op(step: FlamePage) -> None:
    step.click(0.5, 3)
    step.page.get_by_role("button", name="Callers, callees").click()
    expect(step.place).to_have_text("callers and callees of aten.mm.default · 2.20 ms")
    # Below the heading: the callers, the nearest last; 1.4 of 2.2 ms are of the backward pass.
    assert [step.color(0.6, row) for row in (2, 3, 4)] == [FORWARD, BACKWARD, BACKWARD]
    assert step.color(0.7, 4) == FORWARD
    step.hover(0.7, 4)
    expect(step.tip).to_contain_text("aten.linear.default")
    expect(step.tip).to_contain_text("800 µs · 36.4 % of aten.mm.default")


def test_a_caller_selects_the_calls_that_came_through_it(step: FlamePage) -> None:
    step.press("h", "h", "h", "h", "c", "ArrowUp")
    expect(step.status).to_contain_text("MmBackward0, a caller, 1.40 ms, 63.6 % of aten.mm.default, depth 2, 1 of 2")
    step.press("ArrowRight", " ")
    assert step.selection() == {"label": "aten.linear.default", "ids": [4, 10], "op": None, "saves": 1}


def test_escape_leads_back_to_what_was_shown_before(step: FlamePage) -> None:
    step.choose("Order", "left heavy")
    step.press("h", "c", "Escape")
    expect(step.place).to_have_text("left heavy, merged calls · all host time, 5.00 ms")


def test_in_the_list_of_views_it_begins_with_the_op_that_took_most(step: FlamePage) -> None:
    step.choose("Group", "callers, callees")
    expect(step.place).to_have_text("callers and callees of aten.mm.default · 2.20 ms")
    expect(step.page.get_by_label("Order")).to_be_disabled()
    step.page.get_by_role("button", name="Table").click()
    assert ["aten.linear.default (caller)", "2", "0 µs", "800 µs", "36.4 %"] in step.table()


def test_of_a_comparison_it_shows_this_run_alone(page: Page) -> None:
    page.emulate_media(reduced_motion="reduce")
    shown = FlamePage(page, training_step(1.5), base=training_step())
    shown.choose("Group", "callers, callees")
    expect(page.get_by_label("Color", exact=True)).to_have_value("phase")
    shown.press("Escape", "Escape")
    expect(page.get_by_label("Color", exact=True)).to_have_value("difference")
