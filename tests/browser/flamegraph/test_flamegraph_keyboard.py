"""The flame graph without a mouse: moving, zooming, the table twin, and what is announced."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.flame_page import FlamePage, training_step


@pytest.fixture
def step(page: Page) -> FlamePage:
    page.emulate_media(reduced_motion="reduce")
    return FlamePage(page, training_step())


def test_arrows_go_to_child_sibling_and_parent_and_say_so(step: FlamePage) -> None:
    step.press()
    expect(step.status).to_have_text("step, 5.00 ms, 100.0 % of the step, depth 1, 1 of 1")
    step.press("ArrowDown", "ArrowRight")
    expect(step.status).to_have_text("blocks.1 (Block), 1.00 ms, 20.0 % of the step, depth 2, 2 of 4")
    step.press("End")
    expect(step.status).to_contain_text("torch.optim.AdamW.step, 600 µs, 12.0 % of the step, depth 2, 4 of 4")
    step.press("Home", "ArrowUp")
    expect(step.status).to_contain_text("step, 5.00 ms")


def test_the_focused_frame_is_an_item_of_a_tree_with_its_tooltip(step: FlamePage) -> None:
    step.press("ArrowDown", "ArrowDown")
    item = step.page.get_by_role("treeitem")
    expect(item).to_have_text("att (Attention), 460 µs, 9.2 % of the step, depth 3, 1 of 2")
    assert [item.get_attribute(f"aria-{name}") for name in ("level", "posinset", "setsize")] == ["3", "1", "2"]
    expect(step.stage).to_have_attribute("aria-activedescendant", str(item.get_attribute("id")))
    expect(step.tip).to_contain_text("Net.blocks.0.att")


def test_enter_zooms_and_selects_and_escape_goes_back_step_by_step(step: FlamePage) -> None:
    step.press("ArrowDown", "ArrowRight", "Enter")
    assert step.crumbs() == ["all", "step", "blocks.1 (Block)"]
    assert step.selection()["ids"] == [7, 8, 9, 10, 11, 12]
    step.press("Escape")
    assert step.selection() == {"label": None, "ids": None, "op": None, "saves": 2}
    step.press("Escape")
    assert step.crumbs() == ["all"]


def test_space_selects_without_zoom_and_again_deselects(step: FlamePage) -> None:
    step.press("ArrowDown", " ")
    assert step.crumbs() == ["all"]
    assert step.selection()["op"] == 1
    step.press(" ")
    assert step.selection()["op"] is None


def test_letters_zoom_pan_and_choose_the_view(step: FlamePage) -> None:
    back = step.page.get_by_role("button", name="← Back")
    expect(back).to_be_disabled()
    step.press("w", "w", "d", "a", "s")
    expect(back).to_be_enabled()
    step.press("-")
    expect(back).to_be_disabled()
    step.press("2")
    expect(step.page.get_by_label("Order")).to_have_value("heavy")
    step.press("1")
    expect(step.page.get_by_label("Order")).to_have_value("time")


def test_the_heaviest_child_is_one_key_away(step: FlamePage) -> None:
    step.press("h", "h", "h")
    expect(step.status).to_contain_text("aten.mm.default, 1.40 ms")


def test_slash_searches_and_n_goes_on(step: FlamePage) -> None:
    step.press("/")
    step.page.keyboard.type("gelu")
    step.page.keyboard.press("Enter")
    expect(step.status).to_contain_text("aten.gelu.default, 480 µs")
    step.page.keyboard.press("ArrowDown")
    step.press("n", "N", "N")
    expect(step.status).to_contain_text("aten.gelu.default")
    assert step.page.evaluate("document.activeElement.getAttribute('role')") == "tree"


def test_question_mark_lists_the_keys(step: FlamePage) -> None:
    keys = step.page.get_by_role("region", name="Keys")
    expect(keys).to_be_hidden()
    step.press("?")
    expect(keys).to_contain_text("zoom to the frame and select it")
    expect(step.page.get_by_role("button", name="Keys")).to_have_attribute("aria-expanded", "true")


def test_the_frame_table_sorts_and_follows_search_and_zoom(step: FlamePage) -> None:
    step.press("t")
    assert step.table()[0] == ["aten.mm.default", "3", "2.20 ms", "2.20 ms", "44.0 %"]
    step.page.get_by_role("button", name="total time").click()
    expect(step.page.get_by_role("columnheader", name="total time")).to_have_attribute("aria-sort", "descending")
    assert step.table()[0][0] == "step"
    step.search.fill("gelu|relu")
    expect(step.page.locator("caption")).to_have_text("all frames, matching gelu|relu: 1 name")
    step.search.fill("")
    step.press("ArrowDown", "Enter")
    expect(step.page.locator("caption")).to_have_text("inside Net.blocks.0 (Block): 6 names")


def test_a_line_of_the_table_leads_to_its_largest_frame(step: FlamePage) -> None:
    step.press("t")
    step.page.get_by_role("button", name="aten.mm.default").press("Enter")
    assert step.selection()["op"] == 15


def test_focus_and_selection_stay_on_their_op_when_the_view_changes(step: FlamePage) -> None:
    step.press("h", "h", " ", "2")
    expect(step.page.get_by_role("heading", name="MmBackward0")).to_be_visible()
    step.press("ArrowDown")
    expect(step.status).to_contain_text("aten.mm.default, 1.40 ms")


def test_other_keys_reach_the_notebook(step: FlamePage) -> None:
    step.page.evaluate("window.keys = []; addEventListener('keydown', (event) => window.keys.push(event.key))")
    step.press("q", "ArrowDown", "Escape", "Escape", "Control+s")
    assert step.page.evaluate("window.keys") == ["q", "Escape", "Control", "s"]
