"""The flame graph in a browser: drawing, zoom, search, views, selection."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.flame_page import FlamePage, encoded, flame, node, training_step

FORWARD, BACKWARD, GREY = "#3b8cf6", "#d97706", "#868686"
REPEATS = {"Net.blocks.0": "*", "Net.blocks.1": "*"}
TWO_TRACKS = (("thread 0", "host"), ("cuda:0 stream 7", "device"))


@pytest.fixture
def step(page: Page) -> FlamePage:
    page.emulate_media(reduced_motion="reduce")
    return FlamePage(page, training_step())


def with_kernels() -> dict[str, object]:
    mm = node("aten.mm.default", 400, node("cudaLaunchKernel", 100, level="runtime"), device_self=900.0)
    kernel = node("sgemm_128x64", 900, track=1, start=300, level="kernel", device="cuda:0")
    return flame(node("step", 1500, mm, level="range"), kernel, tracks=TWO_TRACKS)


def test_boxes_lie_where_the_times_say(step: FlamePage) -> None:
    assert [step.color(0.05, row) for row in range(5)] == [FORWARD] * 5
    assert step.color(0.5, 1) == BACKWARD
    assert step.color(0.95, 1) == "#ffffff"


def test_click_selects_zooms_and_pins_details(step: FlamePage) -> None:
    step.click(0.5, 2)
    expect(step.page.get_by_role("heading", name="MmBackward0")).to_be_visible()
    assert step.crumbs() == ["all", "step", "torch.autograd.backward", "MmBackward0"]
    assert [step.color(share, 2) for share in (0.02, 0.98)] == [BACKWARD, BACKWARD]
    found = step.selection()
    assert found == {"label": "MmBackward0", "ids": [14, 15], "op": 14, "saves": 1}
    step.page.get_by_role("button", name="← Back").click()
    assert step.crumbs() == ["all"]
    assert step.color(0.05, 2) == FORWARD


def test_movements_end_where_they_lead(page: Page) -> None:
    shown = FlamePage(page, training_step())
    shown.press("ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowDown", "Enter")
    assert [shown.color(share, 2) for share in (0.02, 0.98)] == ["#159a4b", "#159a4b"]
    shown.press("0", "w", "w")
    assert shown.crumbs() == ["all"]
    assert [shown.color(share, 1) for share in (0.02, 0.98)] == ["#d97706", "#159a4b"]


def test_a_breadcrumb_zooms_out_to_its_frame(step: FlamePage) -> None:
    step.click(0.5, 3)
    step.page.get_by_role("navigation").get_by_role("button", name="torch.autograd.backward").click()
    assert step.crumbs() == ["all", "step", "torch.autograd.backward"]


def test_breadcrumb_and_place_say_what_is_in_view(step: FlamePage) -> None:
    expect(step.place).to_have_text("time order · all of 5.00 ms")
    step.click(0.5, 3)
    expect(step.place).to_have_text("time order · 1.40 ms from 2.00 ms on, of 5.00 ms")
    step.press("s")
    assert step.crumbs() == ["all", "step"]
    expect(step.place).to_have_text("time order · 2.80 ms from 1.30 ms on, of 5.00 ms")
    step.press("w")
    assert step.crumbs()[-1] == "aten.mm.default"
    step.press("a", "a", "a", "a")
    assert step.crumbs() == ["all", "step"]


def test_an_order_that_is_none_of_time_is_not_called_so(step: FlamePage) -> None:
    step.choose("Group", "by phase")
    expect(step.place).to_have_text("by phase, in the order of first calls · all host time, 5.00 ms")
    step.choose("Order", "left heavy")
    expect(step.place).to_have_text("left heavy, by phase · all host time, 5.00 ms")
    step.choose("Order", "first call first")
    step.choose("Group", "calls")
    expect(step.page.get_by_label("Order").locator("option").first).to_have_text("time order")


def test_wheel_with_control_zooms_about_the_pointer_and_drag_with_shift_pans(step: FlamePage) -> None:
    step.hover(0.5, 1)
    step.page.keyboard.down("Control")
    step.page.mouse.wheel(0, -300)
    step.page.keyboard.up("Control")
    assert [step.color(share, 1) for share in (0.1, 0.9)] == [FORWARD, BACKWARD]
    step.page.keyboard.down("Shift")
    step.drag(0.5, 0.9, row=1)
    step.page.keyboard.up("Shift")
    assert step.color(0.5, 1) == FORWARD
    assert step.selection()["saves"] == 0
    expect(step.range).to_be_hidden()


def test_drag_without_shift_pans_where_there_is_no_time_axis(step: FlamePage) -> None:
    step.choose("Order", "left heavy")
    step.press("w", "w")
    before = step.color(0.5, 1)
    step.drag(0.2, 0.9, row=1)
    assert step.color(0.9, 1) != "#ffffff" and before != ""
    expect(step.range).to_be_hidden()


def test_tooltip_shows_the_facts_and_flips_at_the_edge(step: FlamePage) -> None:
    step.hover(0.05, 4)
    expect(step.tip).to_contain_text("aten.mm.default")
    texts = step.tip.locator("dd").all_inner_texts()
    assert texts[:2] == ["400 µs · 8.0 % of the step", "400 µs · 8.0 % of the step"]
    assert {"2.00 GFLOP", "4.00 KiB", "net.py:12", "[[2, 64], [64, 64]]"} <= set(texts)
    step.hover(0.97, 0)
    expect(step.tip).to_contain_text("step")
    tip, root = step.tip.bounding_box(), step.page.locator(".nbkit-flamegraph").bounding_box()
    assert tip is not None and root is not None
    assert tip["x"] + tip["width"] <= root["x"] + root["width"]
    assert tip["x"] + tip["width"] < root["x"] + root["width"] * 0.97


def test_search_dims_the_rest_and_shows_the_share(step: FlamePage) -> None:
    step.search.fill("gelu|MmBackward")
    expect(step.page.locator(".nb-found")).to_have_text("3 matches · 49.2 % of the time")
    assert step.color(0.5, 3) not in (BACKWARD, "#ffffff")
    expect(step.status).to_have_text("3 matches · 49.2 % of the time")
    step.search.press("Enter")
    expect(step.status).to_contain_text("MmBackward0, 1.50 ms")
    step.search.press("Enter")
    expect(step.status).to_contain_text("aten.gelu.default, 480 µs")
    step.search.press("Shift+Enter")
    expect(step.status).to_contain_text("MmBackward0")


def test_a_broken_regular_expression_is_one_sentence(step: FlamePage) -> None:
    step.search.fill("mm(")
    expect(step.page.get_by_role("alert")).to_have_text(
        "Not a regular expression (Unterminated group); searching for it as plain text."
    )
    step.search.fill("")
    expect(step.page.get_by_role("alert")).to_be_hidden()


def test_left_heavy_merges_and_sorts(step: FlamePage) -> None:
    step.choose("Order", "left heavy")
    assert step.color(0.05, 1) == BACKWARD
    expect(step.status).to_have_text("left heavy, merged calls, 18 frames")
    step.hover(0.05, 3)
    expect(step.tip).to_contain_text("aten.mm.default")


@pytest.mark.parametrize(
    ("group", "names"), [("by module", "Net"), ("by op", "aten.mm.default"), ("by phase", "forward")]
)
def test_groupings_begin_with_what_they_group_by(step: FlamePage, group: str, names: str) -> None:
    step.choose("Group", group)
    step.choose("Order", "left heavy")
    step.hover(0.02, 0)
    expect(step.tip.locator("strong")).to_have_text(names)


def test_repeated_layers_are_one_in_merged_views_and_each_on_demand(page: Page) -> None:
    shown = FlamePage(page, {**training_step(), "repeats": REPEATS})
    merge = page.get_by_role("button", name="Merge layers")
    expect(merge).to_be_disabled()
    shown.choose("Order", "left heavy")
    expect(shown.status).to_have_text("left heavy, merged calls, repeated layers as one, 12 frames")
    shown.press("Home", "ArrowDown")
    expect(shown.status).to_contain_text("blocks.* × 2 (Block), 2.00 ms, 40.0 % of all host time, 2 calls")
    shown.press(" ")
    assert shown.selection()["ids"] == list(range(1, 13))
    shown.press("m")
    expect(merge).to_have_attribute("aria-pressed", "false")
    expect(shown.status).to_have_text("left heavy, merged calls, 18 frames")


def test_a_comparison_opens_with_each_layer_and_shows_them_as_one_on_demand(page: Page) -> None:
    now, base = ({**state, "repeats": REPEATS} for state in (training_step(1.5), training_step()))
    shown = FlamePage(page, now, base=base)
    merge = page.get_by_role("button", name="Merge layers")
    expect(merge).to_have_attribute("aria-pressed", "false")
    shown.press("Home", "ArrowDown", "m")
    expect(merge).to_have_attribute("aria-pressed", "true")
    expect(shown.place).to_contain_text("left heavy, merged calls, repeated layers as one")
    shown.press("Home")
    # 240 of 2,000 us in both blocks: less than twice as long, which is what single recordings tell from noise.
    said = "blocks.* × 2 (Block), 2.24 ms, 42.7 % of all host time, 2 calls, +240 µs (+12.0 %), noise unknown"
    expect(shown.status).to_contain_text(said)
    shown.press("1")
    expect(merge).to_be_disabled()


def test_without_repeated_layers_there_is_nothing_to_merge(step: FlamePage) -> None:
    expect(step.page.get_by_role("button", name="Merge layers")).to_be_hidden()


def test_flame_orientation_puts_the_root_below(step: FlamePage) -> None:
    step.page.get_by_role("button", name="Flame / icicle").click()
    assert step.color(0.95, 0) == "#ffffff"
    assert step.color(0.95, 4) == FORWARD


def test_host_and_device_time_switch_in_merged_views(page: Page) -> None:
    shown = FlamePage(page, with_kernels())
    expect(page.get_by_label("Time", exact=True)).to_be_disabled()
    shown.choose("Order", "left heavy")
    shown.choose("Time", "device time")
    shown.hover(0.5, 1)
    expect(shown.tip).to_contain_text("900 µs · 100.0 % of all device time")


def test_tracks_are_stacked_in_time_order_and_colours_follow_the_device(page: Page) -> None:
    shown = FlamePage(page, with_kernels())
    shown.choose("Color", "color: device")
    shown.hover(0.5, 5)
    expect(shown.tip).to_contain_text("sgemm_128x64")
    assert shown.color(0.5, 5) == "#3b8cf6"
    assert page.get_by_role("list", name="Colors").get_by_role("listitem").all_inner_texts() == [
        "no device\n62.5 %",
        "cuda:0\n37.5 %",
    ]


def test_selection_from_python_is_revealed_and_marked(step: FlamePage) -> None:
    step.select_from_python(12)
    expect(step.page.get_by_role("heading", name="aten.gelu.default")).to_be_visible()
    assert step.selection()["saves"] == 0
    step.select_from_python(None)
    expect(step.page.get_by_role("region", name="Selected frame")).to_be_hidden()


def test_an_op_that_the_view_lacks_brings_back_time_order(page: Page) -> None:
    shown = FlamePage(page, with_kernels())
    shown.choose("Group", "by op")
    shown.select_from_python(3)
    expect(page.get_by_label("Group", exact=True)).to_have_value("none")
    expect(page.get_by_role("heading", name="sgemm_128x64")).to_be_visible()


def test_a_merged_frame_selects_all_its_rows(step: FlamePage) -> None:
    step.choose("Group", "by op")
    step.page.get_by_role("button", name="Table").click()
    step.page.get_by_role("button", name="aten.mm.default").click()
    assert step.selection() == {"label": "aten.mm.default", "ids": [4, 10, 15], "op": None, "saves": 1}


def test_memory_lies_below_the_timeline_only(page: Page) -> None:
    memory = [{"device": "cpu", "time": encoded([0, 2500], "<f8"), "allocated": encoded([1 << 20, 3 << 20], "<f8")}]
    shown = FlamePage(page, {**training_step(), "memory": memory})
    track = page.get_by_role("img", name="Memory allocated on cpu: peak 3.00 MiB at 2.50 ms")
    expect(track).to_be_visible()
    track.hover(position={"x": 100, "y": 20})
    expect(page.get_by_role("group", name="Memory over time")).to_contain_text("1.00 MiB at")
    widths = [
        page.locator(name).evaluate("(canvas) => canvas.width") for name in (".nb-flame-canvas", "canvas[role=img]")
    ]
    assert widths[0] == widths[1]
    shown.choose("Order", "left heavy")
    expect(track).to_be_hidden()


def test_new_data_and_the_end_leave_no_listener(step: FlamePage) -> None:
    step.page.evaluate("(state) => window.model.set('flame', window.decodeState(state))", flame(node("other", 5)))
    expect(step.page.get_by_text("1 frame", exact=True)).to_be_visible()
    assert step.page.locator(".nbkit-flamegraph").count() == 1
    step.page.evaluate("window.cleanUp()")
    assert step.page.evaluate("window.listenerCount()") == 0
    assert step.page.locator(".nbkit-flamegraph").count() == 0
