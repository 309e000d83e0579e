"""A range of time in the flame graph: selected by pointer and keys, summed up by op and by module, cleared."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.flame_page import FlamePage, flame, node, training_step

TWO_TRACKS = (("thread 0", "host"), ("cuda:0 stream 7", "device"))
CUT = "A call that an edge of the range cuts counts with the part of its self time inside."


@pytest.fixture
def step(page: Page) -> FlamePage:
    page.emulate_media(reduced_motion="reduce")
    return FlamePage(page, training_step())


def test_drag_in_time_order_selects_a_range_and_sums_it_up(step: FlamePage) -> None:
    # From 0.5 ms, in the gelu of the first block, to 1.25 ms, in the mm of the second.
    step.drag(0.1, 0.25, row=2)
    expect(step.range.get_by_role("heading")).to_have_text("Range of 750 µs, 15.0 % of the step")
    said = f"From 500 µs to 1.25 ms: 8 calls, 8 cut by an edge. Shares are of the range. {CUT}"
    expect(step.range).to_contain_text(said)
    expect(step.status).to_have_text("Range of 750 µs, 15.0 % of the step")
    assert step.range_sums("op")[:4] == [
        ["aten.gelu.default", "1", "440 µs", "58.7 %"],
        ["aten.mm.default", "1", "250 µs", "33.3 %"],
        ["Mlp", "1", "40.0 µs", "5.3 %"],
        ["Block", "2", "20.0 µs", "2.7 %"],
    ]
    assert step.range_sums("module")[:2] == [
        ["Net.blocks.0.mlp", "2", "480 µs", "64.0 %"],
        ["Net.blocks.1.att", "3", "250 µs", "33.3 %"],
    ]
    assert step.selection() == {"label": None, "ids": None, "op": None, "saves": 1}
    assert step.crumbs() == ["all"]


def test_the_model_has_the_calls_of_the_sums_once_the_drag_ends(step: FlamePage) -> None:
    step.drag(0.1, 0.25, row=2)
    told = step.selected_range()
    # Both blocks, the mlp of the first and the attention of the second, what these call, and the step around them.
    assert told is not None and (told["label"], told["ids"]) == ("range 500 µs to 1.25 ms", [0, 1, 5, 6, 7, 8, 9, 10])
    assert [round(told[end], 3) for end in ("from_us", "to_us")] == [500, 1250]
    step.press("Escape")
    assert (step.selected_range(), step.selection()["saves"]) == (None, 2)


def test_a_range_cleared_from_outside_is_cleared_here(step: FlamePage) -> None:
    step.drag(0.1, 0.25, row=2)
    step.page.evaluate("window.model.set('selected_range', null)")
    expect(step.range).to_be_hidden()
    step.choose("Order", "left heavy")
    step.choose("Order", "time order")
    expect(step.range).to_be_hidden()


def test_another_view_of_the_model_takes_the_range_over(step: FlamePage) -> None:
    step.drag(0.1, 0.25, row=2)
    step.page.evaluate("""async () => { window.cleanUp();
      window.cleanUp = await window.module.render({ model: window.model, el: document.getElementById("host") }); }""")
    expect(step.range.get_by_role("heading")).to_have_text("Range of 750 µs, 15.0 % of the step")
    assert step.selection()["saves"] == 1
    step.press("Escape")
    assert step.selected_range() is None


def test_what_lies_outside_is_veiled_until_escape(step: FlamePage) -> None:
    before = step.color(0.5, 1)
    step.drag(0.1, 0.25, row=2)
    assert step.color(0.5, 1) != before
    step.press("Escape")
    expect(step.range).to_be_hidden()
    assert step.color(0.5, 1) == before


def test_a_click_where_no_frame_is_clears_the_range(step: FlamePage) -> None:
    step.drag(0.1, 0.25, row=2)
    step.click(0.95, 4)
    expect(step.range).to_be_hidden()


def test_shift_and_arrows_extend_a_range_from_frame_to_frame(step: FlamePage) -> None:
    step.press("Home", "ArrowDown", "Shift+ArrowRight")
    expect(step.range.get_by_role("heading")).to_have_text("Range of 2.00 ms, 40.0 % of the step")
    expect(step.status).to_contain_text("Range of 2.00 ms, 40.0 % of the step; blocks.1 (Block), 1.00 ms")
    step.press("Shift+ArrowRight")
    expect(step.range.get_by_role("heading")).to_have_text("Range of 3.70 ms, 74.0 % of the step")
    step.press("Shift+ArrowLeft", "Shift+ArrowLeft")
    expect(step.range).to_contain_text("From 0 µs to 1.00 ms: 7 calls, 1 cut by an edge.")
    step.press("Escape")
    expect(step.range).to_be_hidden()


def test_the_range_is_zoomed_to_and_back(step: FlamePage) -> None:
    step.drag(0.45, 0.6, row=2)
    step.press("z")
    assert [step.color(share, 3) for share in (0.02, 0.98)] == ["#d97706", "#d97706"]
    step.page.get_by_role("button", name="← Back").click()
    assert step.color(0.5, 1) == "#d97706"
    assert step.color(0.3, 1) != "#d97706"


def test_other_views_have_no_time_and_time_order_brings_the_range_back(step: FlamePage) -> None:
    step.drag(0.1, 0.25, row=2)
    step.choose("Order", "left heavy")
    expect(step.range).to_be_hidden()
    assert step.selected_range() is None
    step.choose("Order", "time order")
    expect(step.range.get_by_role("heading")).to_have_text("Range of 750 µs, 15.0 % of the step")
    told = step.selected_range()
    assert told is not None and len(told["ids"]) == 8


def test_time_of_devices_has_columns_of_its_own(page: Page) -> None:
    mm = node("aten.mm.default", 400, module="fc", device_self=900.0)
    kernel = node("sgemm", 900, track=1, start=300, level="kernel", device="cuda:0", module="fc")
    shown = FlamePage(page, flame(node("step", 1000, mm, level="range"), kernel, tracks=TWO_TRACKS))
    shown.drag(0.25, 0.5, row=2)
    assert shown.range_sums("op") == [
        ["sgemm", "—", "—", "—", "1", "300 µs", "100.0 %"],
        ["step", "1", "200 µs", "66.7 %", "—", "—", "—"],
        ["aten.mm.default", "1", "100 µs", "33.3 %", "—", "—", "—"],
    ]
    expect(shown.range).to_contain_text("Threads and streams run side by side")
