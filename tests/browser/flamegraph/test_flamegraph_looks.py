"""The flame graph in light and dark, narrow, with hostile names, without data, and under axe-core's rules."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.flame_page import FlamePage, flame, known_noise, node, training_step
from tests.browser.op_table.test_op_table_looks import DARK, LIGHT, SET_THEME, violations

EVIL = "\u202e<img src=x onerror=window.hacked=1>&lt;b&gt; " + "kernel_name<float, 128, " * 60
SLOWER, REMOVED, ADDED = "#d97706", "#9d6bf2", "#d94fa6"
BEYOND = "slower: +240 µs (+50.0 %), beyond noise ±6.3 %"  # 6.25, which JavaScript rounds up


def background(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.querySelector('.nbkit-flamegraph')).backgroundColor"))


@pytest.mark.parametrize(("is_light", "variables"), [(True, LIGHT), (False, DARK)])
def test_no_accessibility_violation(page: Page, is_light: bool, variables: dict[str, str]) -> None:
    page.emulate_media(reduced_motion="reduce")
    shown = FlamePage(page, {**training_step(1.5), "complete": False, "notes": ["a note"]}, base=training_step())
    page.evaluate(SET_THEME, [is_light, variables])
    shown.press("?", "t", "ArrowDown", "Enter")
    shown.search.fill("mm(")
    expect(page.get_by_role("alert")).to_be_visible()
    shown.settle()
    assert violations(page) == []
    shown.press("c", "ArrowUp")
    shown.settle()
    assert violations(page) == []
    shown.choose("Group", "calls")
    shown.press("1", "Home", "Shift+ArrowDown")
    expect(shown.range).to_be_visible()
    assert violations(page) == []


def test_theme_switch_is_followed_live_by_page_and_canvas(page: Page) -> None:
    shown = FlamePage(page, training_step())
    page.evaluate(SET_THEME, [True, LIGHT])
    assert (background(page), shown.color(0.95, 2)) == ("rgb(255, 255, 255)", "#ffffff")
    page.evaluate(SET_THEME, [False, DARK])
    assert (background(page), shown.color(0.95, 2)) == ("rgb(17, 17, 17)", "#111111")


def test_colors_that_come_late_are_followed_without_the_pointer(page: Page) -> None:
    # JupyterLab may swap its style sheet long after the attributes that name the theme, and says so in no event.
    shown = FlamePage(page, training_step())
    page.evaluate("document.adoptedStyleSheets = [new CSSStyleSheet()]")
    page.evaluate("document.adoptedStyleSheets[0].replaceSync('html { --jp-layout-color0: #112233; }')")
    assert (background(page), shown.color(0.95, 2)) == ("rgb(17, 34, 51)", "#112233")


PAGE_COLOR = """const shown = () => ["nb-flame-canvas", "nb-flame-minimap"].map((name) => {
  const canvas = document.querySelector(`.${name}`);
  const at = [Math.round(canvas.width * 0.95), canvas.height - 3];
  return [...canvas.getContext("2d").getImageData(...at, 1, 1).data.slice(0, 3)].join(); });"""


def test_a_theme_reaches_the_canvas_before_the_next_frame(page: Page) -> None:
    FlamePage(page, training_step()).settle()
    switch = f"async (theme) => {{ {PAGE_COLOR} ({SET_THEME})(theme); await null; await null; return shown(); }}"
    for _ in range(3):
        assert page.evaluate(switch, [False, DARK]) == ["17,17,17"] * 2
        assert page.evaluate(switch, [True, LIGHT]) == ["255,255,255"] * 2


def test_colors_that_come_late_on_a_busy_page_take_a_few_frames(page: Page) -> None:
    FlamePage(page, training_step()).settle()
    frames = page.evaluate(f"""async () => {{ {PAGE_COLOR} const taken = []; const sheet = new CSSStyleSheet();
      document.adoptedStyleSheets = [sheet];
      for (let turn = 0; turn < 20; turn += 1) {{
        const color = turn % 2 ? [255, 255, 255] : [17, 34, 51]; let frames = 0;
        sheet.replaceSync(`html {{ --jp-layout-color0: rgb(${{color}}); }}`);
        for (const until = performance.now() + 4 * turn; performance.now() < until; );
        for (; shown().some((found) => found !== color.join()) && frames < 100; frames += 1)
          await new Promise(requestAnimationFrame);
        taken.push(frames);
      }}
      return taken; }}""")
    # The style sheet lets the colors change for a millisecond, which ends in the frame after the next at the latest.
    assert max(frames) <= 4


def test_without_a_host_theme_the_system_decides_also_later(page: Page) -> None:
    page.emulate_media(color_scheme="light")
    shown = FlamePage(page, training_step())
    page.emulate_media(color_scheme="dark")
    assert (background(page), shown.color(0.95, 2)) == ("rgb(22, 22, 22)", "#161616")


def test_vs_code_themes_win_over_the_system(page: Page) -> None:
    page.emulate_media(color_scheme="light")
    shown = FlamePage(page, training_step())
    page.evaluate("document.body.dataset.vscodeThemeKind = 'vscode-dark'")
    assert (background(page), shown.color(0.95, 2)) == ("rgb(22, 22, 22)", "#161616")


def test_at_360_pixels_nothing_sticks_out(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 900})
    shown = FlamePage(page, training_step(1.5), base=training_step())
    shown.press("?", "t", "ArrowDown", "ArrowDown")
    expect(shown.tip).to_be_visible()
    tip = shown.tip.bounding_box()
    assert tip is not None and tip["x"] >= 0 and tip["x"] + tip["width"] <= 360
    shown.press("Enter", "1", "Home", "Shift+End")
    expect(shown.range).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    shown.press("c")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_hostile_names_stay_text(page: Page) -> None:
    page.set_viewport_size({"width": 500, "height": 900})
    shown = FlamePage(
        page, flame(node(EVIL, 100, node(EVIL, 50, module=EVIL, source=EVIL, shapes=EVIL), level="module", module=EVIL))
    )
    shown.press("t", "ArrowDown", "Enter")
    shown.hover(0.5, 0)
    shown.drag(0.2, 0.8, row=1)
    assert "\u202e" not in shown.range.inner_text()
    shown.press("c")
    assert "\u202e" not in shown.place.inner_text()
    assert page.locator("img").count() == 0
    assert page.evaluate("window.hacked") is None
    assert "\u202e" not in page.get_by_role("heading", level=3).inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 500


def test_a_difference_opens_merged_with_what_is_gone(page: Page) -> None:
    shown = FlamePage(page, training_step(1.5, renamed=True), base=training_step())
    expect(page.get_by_label("Order")).to_have_value("heavy")
    expect(page.get_by_label("Color", exact=True)).to_have_value("difference")
    assert page.get_by_role("list", name="Colors").get_by_role("listitem").all_inner_texts()[-1] == "removed\n1 frame"
    shown.press("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight")
    expect(shown.status).to_contain_text("aten.gelu.default, 0 µs, 0.0 % of all host time, removed, was 480 µs")


def test_the_timeline_of_a_difference_says_what_it_cannot_draw(page: Page) -> None:
    shown = FlamePage(page, training_step(1.5, renamed=True), base=training_step())
    note = page.get_by_text("1 removed frame not drawn in time order: choose left heavy")
    expect(note).to_be_hidden()
    shown.press("1")
    expect(note).to_be_visible()
    legend = page.get_by_role("list", name="Colors")
    assert legend.get_by_role("listitem").all_inner_texts() == [
        "no clear change\n15 frames",
        "slower\n2 frames",
        "added\n1 frame",
    ]
    assert shown.color(0.3, 1) == SLOWER


def test_grouped_by_module_two_equal_traces_are_the_same(page: Page) -> None:
    # The op of the root module's row bears the name of its class, which begins all module paths.
    step = flame(node("Net", 100, node("aten.mm", 60, module="Net.fc"), level="module", module="Net"))
    FlamePage(page, step, base=step)
    page.get_by_label("Group", exact=True).select_option("module")
    assert page.get_by_role("list", name="Colors").get_by_role("listitem").all_inner_texts() == [
        "no clear change\n6 frames"
    ]


def test_the_table_of_a_difference_starts_with_what_changed_most(page: Page) -> None:
    shown = FlamePage(page, training_step(1.5), base=training_step())
    shown.press("t")
    figures = ["aten.gelu.default", "2", "1.20 ms", "1.20 ms", "22.9 %", "960 µs", "+240 µs"]
    assert shown.table()[0] == [*figures, "1 slower of 2 frames, noise unknown"]
    shown.page.get_by_role("button", name="aten.gelu.default").click()
    assert shown.selection()["op"] == 12


def test_with_repeats_only_what_is_beyond_their_noise_has_a_colour(page: Page) -> None:
    noise = known_noise((0, 5_000.0, 240.0, 400.0), (12, 480.0, 240.0, 30.0), notes=("The machine was slower.",))
    shown = FlamePage(page, training_step(1.5), base=training_step(), difference=noise)
    legend = page.locator(".nb-flame-legend")
    assert legend.get_by_role("listitem").all_inner_texts() == ["within noise\n17 frames", "slower\n1 frame"]
    expect(legend).to_contain_text("beyond the noise of 10 repeats, 10 before")
    expect(page.get_by_role("list", name="Notes")).to_have_text("The machine was slower.")
    shown.press("Home")
    expect(shown.status).to_contain_text("within noise (+4.8 %, noise ±8.0 %)")
    shown.select_from_python(12)
    expect(page.get_by_role("region", name="Selected frame")).to_contain_text(BEYOND)
    shown.press("t")
    assert shown.table()[0][-1] == "1 slower of 2 frames"


def test_single_recordings_say_that_their_noise_is_unknown(page: Page) -> None:
    shown = FlamePage(page, training_step(1.5), base=training_step())
    expect(page.locator(".nb-flame-legend")).to_contain_text("one run each: noise unknown; colored: at least 1.2")
    shown.select_from_python(12)
    said = "slower: +240 µs (+50.0 %), noise unknown"
    expect(page.get_by_role("region", name="Selected frame")).to_contain_text(said)
    shown.hover(0.01, 0)
    expect(shown.tip).to_contain_text("+240 µs (+4.8 %), noise unknown")


def test_what_is_gone_is_reached_from_the_table(page: Page) -> None:
    base = flame(node("step", 100, node("captured", 50), node("dropped", 30)))
    shown = FlamePage(page, flame(node("step", 100, node("captured", 50))), base=base)
    shown.press("t")
    assert shown.table()[0][5:] == ["30.0 µs", "−30.0 µs", "removed, was 30.0 µs"]
    page.get_by_role("button", name="dropped").click()
    expect(page.get_by_label("Order")).to_have_value("heavy")
    expect(page.get_by_role("region", name="Selected frame")).to_contain_text("removed, was 30.0 µs")
    assert shown.selection() == {"label": "dropped", "ids": [], "op": None, "saves": 1}


def test_no_data_and_a_single_frame(page: Page) -> None:
    FlamePage(page, flame())
    expect(page.get_by_text("No op was recorded, so there is no frame to show.")).to_be_visible()
    page.evaluate("(state) => window.model.set('flame', window.decodeState(state))", flame(node("only", 0)))
    expect(page.get_by_text("1 frame", exact=True)).to_be_visible()


def test_a_thousand_levels_scroll(page: Page) -> None:
    deep = node("leaf", 1000)
    for level in range(999):
        deep = node(f"level {level}", 1000, deep)
    shown = FlamePage(page, flame(deep))
    assert shown.stage.evaluate("(stage) => stage.scrollHeight") == 18 + 1000 * 18
    shown.select_from_python(999)
    expect(page.get_by_role("treeitem")).to_contain_text("leaf, 1.00 ms, 100.0 % of the recording, depth 1000, 1 of 1")
    assert shown.stage.evaluate("(stage) => stage.scrollTop") > 17_000


def test_many_roots_and_no_duration(page: Page) -> None:
    shown = FlamePage(page, flame(*(node(f"op {index % 7}", index % 3, start=index) for index in range(3000))))
    shown.press("2", "End")
    expect(shown.status).to_contain_text("7 of 7")
    shown.press("1", "End")
    expect(shown.status).to_contain_text("3000 of 3000")


def test_twice_the_pixels_give_twice_the_canvas(page: Page) -> None:
    context = page.context.browser.new_context(device_scale_factor=2, viewport={"width": 800, "height": 600})  # type: ignore[union-attr]
    sharp = context.new_page()
    shown = FlamePage(sharp, training_step())
    shown.settle()
    assert (
        sharp.evaluate("(() => { const c = document.querySelector('canvas'); return c.width / c.clientWidth })()") == 2
    )
    assert shown.color(0.5, 1) == SLOWER
    context.close()


def test_print_is_light_and_without_tools(page: Page) -> None:
    shown = FlamePage(page, training_step())
    page.evaluate(SET_THEME, [False, DARK])
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert shown.color(0.95, 2) == "#ffffff"
    expect(shown.search).to_be_hidden()
    page.emulate_media(media="screen")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert shown.color(0.95, 2) == "#111111"
