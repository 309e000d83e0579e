"""A report in a real browser, opened from a file: it draws by itself, asks for nothing, runs nothing else."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from nbkit import units
from nbkit.trace.trace import Trace
from nbkit.views.report.opreport import opreport
from tests.analysis.repeated import nested
from tests.browser.work import work
from tests.support.fakes import fake_trace, make_ops, make_trace, timed_trace

PIXELS = """canvas => { const { width, height } = canvas;
  const data = canvas.getContext("2d").getImageData(0, 0, width, height).data;
  const colors = new Set();
  for (let at = 0; at < data.length; at += 4) colors.add(data[at] + data[at + 1] * 256 + data[at + 2] * 65536);
  return colors.size; }"""


@pytest.fixture
def said(page: Page) -> list[str]:
    """What the page's console said."""
    found: list[str] = []
    page.on("console", lambda message: found.append(message.text))
    return found


def opened(page: Page, trace: Trace, folder: Path, base: Trace | None = None) -> Page:
    page.goto(opreport(trace, path=folder / "page.html", base=base).as_uri())
    return page


def test_the_flamegraph_is_drawn_in_place_of_its_still_twin(page: Page, tmp_path: Path, said: list[str]) -> None:
    opened(page, timed_trace(name="step"), tmp_path)
    canvas = page.locator("#t1-flamegraph .nbkit-live canvas").first
    expect(canvas).to_be_visible()
    expect(page.locator("#t1-flamegraph .nbkit-static-view")).to_be_hidden()
    page.wait_for_function(f"canvas => ({PIXELS})(canvas) > 4", arg=canvas.element_handle())
    assert said == []


def test_a_difference_is_drawn_too(page: Page, tmp_path: Path, said: list[str]) -> None:
    opened(page, timed_trace(name="after"), tmp_path, base=timed_trace(name="before"))
    expect(page.locator("#t1-flamegraph .nbkit-live")).to_contain_text("before")
    assert said == []


def test_frames_can_be_reached_by_keys(page: Page, tmp_path: Path) -> None:
    opened(page, timed_trace(), tmp_path)
    page.locator("#t1-flamegraph .nbkit-live [role=tree]").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#t1-flamegraph .nbkit-live [role=treeitem]")).not_to_contain_text("no frame")


def test_a_range_of_time_is_summed_up_without_a_kernel(page: Page, tmp_path: Path) -> None:
    opened(page, timed_trace(), tmp_path)
    page.locator("#t1-flamegraph .nbkit-live [role=tree]").focus()
    page.keyboard.press("Home")
    page.keyboard.press("Shift+End")
    rows = page.get_by_role("region", name="Range by op").locator("tbody tr")
    self_time = timed_trace().ops.groupby("op")["self_time_us"].sum().sort_values(ascending=False)
    assert rows.first.locator("th").inner_text() == self_time.index[0]
    assert rows.first.locator("td").nth(1).inner_text() == units.duration(self_time.iloc[0])


def test_hostile_names_are_text(page: Page, tmp_path: Path, said: list[str]) -> None:
    name = "</ScRiPt><script>window.broken=1</script><img src=x onerror=window.broken=1>\u202e'\"" + "x" * 10_000
    ops = make_ops({"op": name, "module": name, "model": name, "source": name, "level": "range"})
    opened(page, make_trace(ops, name=name, verb="optime", notes=[name]), tmp_path)
    expect(page.locator("#t1-flamegraph .nbkit-live canvas").first).to_be_visible()
    assert page.evaluate("window.broken") is None
    assert said == []


def test_without_scripts_the_still_picture_and_the_tables_remain(chromium: Browser, tmp_path: Path) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = opened(context.new_page(), timed_trace(), tmp_path)
    expect(page.locator("#t1-flamegraph .nbkit-static-view svg")).to_be_visible()
    expect(page.locator("#t1-flamegraph .nbkit-live")).to_be_hidden()
    expect(page.get_by_role("table", name="Slowest ops")).to_be_visible()
    context.close()


def test_if_the_data_cannot_be_unpacked_the_still_picture_remains(chromium: Browser, tmp_path: Path) -> None:
    context = chromium.new_context()
    page = context.new_page()
    page.add_init_script("delete window.DecompressionStream")
    # The still picture is there from the beginning: what the console says comes when the page has tried.
    with page.expect_console_message(lambda message: "DecompressionStream is not defined" in message.text):
        opened(page, timed_trace(), tmp_path)
    expect(page.locator("#t1-flamegraph .nbkit-static-view svg")).to_be_visible()
    expect(page.locator("#t1-flamegraph .nbkit-live")).to_be_hidden()
    context.close()


def test_a_script_from_elsewhere_may_not_run(page: Page, tmp_path: Path, said: list[str]) -> None:
    path = opreport(timed_trace(), path=tmp_path / "page.html")
    path.write_text(
        path.read_text(encoding="utf-8").replace("</body>", "<script>window.broken=1</script></body>"), "utf-8"
    )
    page.goto(path.as_uri())
    assert page.evaluate("window.broken") is None
    assert "Content Security Policy" in said[0]


def test_a_hundred_thousand_events_open_without_a_stall(page: Page, tmp_path: Path) -> None:
    path = opreport(fake_trace(100_000, verb="optime"), path=tmp_path / "page.html")
    canvas = page.locator("#t1-flamegraph .nbkit-live canvas").first
    acts = lambda: page.goto(path.as_uri()), lambda: expect(canvas).to_be_visible()
    assert work(page, "open", *acts) < 5.0  # 1 s on a free core


def test_a_difference_of_repeats_is_judged_in_the_page_as_in_the_notebook(
    page: Page, tmp_path: Path, said: list[str]
) -> None:
    opened(page, nested(2, slow="blocks.3", by=1.3), tmp_path, base=nested(1))
    colours = page.get_by_role("list", name="Colors").get_by_role("listitem")
    expect(colours).to_have_count(2)
    assert colours.all_inner_texts() == ["within noise\n60 frames", "slower\n1 frame"]
    for group in ("module", "op", "phase"):
        page.get_by_label("Group", exact=True).select_option(group)
        expect(colours.first).to_contain_text("within noise")
    page.get_by_role("button", name="Table").click()
    page.get_by_label("Group", exact=True).select_option("none")
    expect(page.locator(".nb-flame-table tbody td").nth(6)).to_contain_text("self time slower: +1")
    assert said == []


def test_in_a_narrow_page_bars_stand_below_the_names_which_keep_one_line(page: Page, tmp_path: Path) -> None:
    page.set_viewport_size({"width": 400, "height": 900})
    opened(page, timed_trace(), tmp_path)
    row = page.locator(".nbkit-bars > li").first
    name, bar, time = (row.locator("> span").nth(at).bounding_box() for at in range(3))
    assert name and bar and time
    assert bar["y"] >= name["y"] + name["height"] and bar["width"] > 350
    assert abs(name["y"] - time["y"]) < 2 and name["width"] > 200 and time["x"] + time["width"] > 380


def test_charts_have_the_colours_of_a_dark_page(page: Page, tmp_path: Path) -> None:
    page.emulate_media(color_scheme="dark")
    opened(page, timed_trace(name="step"), tmp_path)
    fills = "elements => [...new Set(elements.map((element) => getComputedStyle(element).fill))]"
    assert page.locator(".charts svg text").evaluate_all(fills) == ["rgb(230, 230, 230)"]
    assert "rgb(255, 255, 255)" not in page.locator(".charts svg path").evaluate_all(fills)


def test_on_paper_there_are_pictures_and_short_tables_and_no_single_calls(page: Page, tmp_path: Path) -> None:
    opened(page, fake_trace(1_000, verb="optime"), tmp_path)
    page.emulate_media(media="print")
    expect(page.locator(".nbkit-bars a").first).to_be_visible()
    expect(page.locator(".nbkit-summary a").first).to_be_visible()
    expect(page.locator("#t1-op_table")).to_be_hidden()
    expect(page.locator("#t1-flamegraph .nbkit-static-view svg")).to_be_visible()
    rows = page.get_by_role("table", name="Slowest modules").locator("tbody tr")
    assert rows.count() > 10
    assert [row.is_visible() for row in rows.all()] == [True] * 10 + [False] * (rows.count() - 10)
