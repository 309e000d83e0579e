"""A graph colored by a column of a frame: legend, tip, details and outline, folded and open, in widget and report."""

import base64
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Page, expect
from torch import nn

import nbkit
from nbkit.trace.trace import Trace
from nbkit.views.graph.data import graph_data
from nbkit.views.report.opreport import opreport
from tests.browser.graph_page import GraphPage
from tests.browser.op_table.test_op_table_looks import DARK, LIGHT, SET_THEME, violations

REPLACE = """(graph) => {
  const bytes = Uint8Array.from(atob(graph), (letter) => letter.charCodeAt(0));
  window.model.set("graph", new DataView(bytes.buffer));
}"""
# Whether the picture has a color at a point: it is drawn in a frame after the key.
IS_FILLED = """([x, y, color]) => {
  const canvas = document.querySelector(".nb-graph-canvas");
  const { data } = canvas.getContext("2d").getImageData(x * devicePixelRatio, y * devicePixelRatio, 1, 1);
  return color.every((part, i) => Math.abs(data[i] - part) <= 3);
}"""


def tree() -> Trace:
    layers = nn.Sequential(*(nn.Linear(4, 4) for _ in range(3)))
    return nbkit.opgraph(nn.Sequential(layers, nn.ReLU()))


def timed() -> Trace:
    return tree().color_by(
        pd.DataFrame({"module": ["0.0", "0.1", "0.2"], "self_time_us": [100.0, 2000.0, 30.0]}), "self_time_us"
    )


def test_a_number_stands_in_legend_outline_details_and_tip_and_a_folded_box_has_the_sum(page: Page) -> None:
    page.emulate_media(reduced_motion="reduce")
    shown = GraphPage(page, timed())
    legend = page.locator(".nb-graph-legend")
    expect(legend).to_contain_text("self_time_us: sum of all in a box")
    expect(legend).to_contain_text("from 910 µs")
    expect(legend).to_contain_text("plain: not in the frame")
    expect(page.get_by_role("combobox", name="Color")).to_have_value("overlay")
    expect(shown.tree.get_by_role("treeitem").nth(1)).to_contain_text("2.13 ms")
    shown.tree.get_by_role("treeitem").nth(1).click()
    expect(page.locator(".nb-detail")).to_contain_text("self_time_us2.13 ms")
    shown.stage.focus()
    shown.press("i", "ArrowRight")
    expect(page.locator(".nb-tip")).to_contain_text("self_time_us2.00 ms")


def test_a_box_is_filled_as_its_step_says_and_one_that_is_not_in_the_frame_is_as_the_page(page: Page) -> None:
    page.emulate_media(reduced_motion="reduce")
    shown = GraphPage(page, tree().color_by(pd.DataFrame({"module": ["0"], "loss": [3.0]}), "loss"))
    shown.stage.focus()
    amber = [round(0.37 * part + 0.63 * 255) for part in (217, 119, 6)]
    for key, color in (("i", amber), ("ArrowRight", [255] * 3)):  # both boxes come to the middle of the picture
        shown.press(key, "f")
        box = shown.stage.bounding_box()
        assert box is not None
        page.wait_for_function(IS_FILLED, arg=[box["width"] / 2 + 40, box["height"] / 2 - 12, color])


def test_colors_change_in_place_and_what_was_open_stays_open(page: Page) -> None:
    page.emulate_media(reduced_motion="reduce")
    shown = GraphPage(page, tree())
    shown.tree.get_by_role("treeitem").nth(1).click()
    shown.press("ArrowRight")
    names = shown.names()
    assert len(names) == 6
    for trace, label in ((timed(), "color: self_time_us"), (tree(), "color: parameters")):
        page.evaluate(REPLACE, base64.b64encode(graph_data(trace)).decode("ascii"))
        expect(page.get_by_role("combobox", name="Color").locator("option").first).to_have_text(label)
        assert shown.names() == names
    expect(shown.tree.get_by_role("treeitem").nth(1)).to_have_attribute("aria-selected", "true")


CORNERS = """() => [...document.querySelectorAll(".nb-graph-canvas")].map((canvas) =>
  [...canvas.getContext("2d").getImageData(1, 1, 1, 1).data].slice(0, 3).join(" "))"""


@pytest.mark.parametrize("is_pair", [False, True])
def test_another_theme_is_drawn_without_the_pointer_also_where_its_colors_come_late(page: Page, is_pair: bool) -> None:
    GraphPage(page, nbkit.opgraph(nn.ReLU(), against=nn.ReLU()) if is_pair else timed())
    sheet = "document.adoptedStyleSheets = [new CSSStyleSheet()]; document.adoptedStyleSheets[0]"
    for script, argument, color in (
        (f"{sheet}.replaceSync('html {{ --jp-layout-color0: #112233; }}')", None, "17 34 51"),
        (SET_THEME, [True, LIGHT], "255 255 255"),
        (SET_THEME, [False, DARK], "17 17 17"),
    ):
        page.evaluate(script, argument)
        page.wait_for_function(f"(color) => ({CORNERS})().every((corner) => corner === color)", arg=color)
    assert len(page.evaluate(CORNERS)) == 1 + is_pair


@pytest.mark.parametrize(("is_light", "variables"), [(True, LIGHT), (False, DARK)])
@pytest.mark.parametrize("column", ["ratio", "status"])
def test_colors_can_be_read_in_light_and_dark(
    page: Page, is_light: bool, variables: dict[str, str], column: str
) -> None:
    rows = pd.DataFrame(
        {"module": ["0.0", "0.1", "0.2", "1"], "ratio": [0.5, 1.0, 2.0, np.inf], "status": list("abcd")}
    )
    shown = GraphPage(page, tree().color_by(rows, column))
    page.evaluate(SET_THEME, [is_light, variables])
    shown.stage.focus()
    shown.press("Enter", " ")
    assert violations(page) == []


def test_a_report_has_the_colors_and_nothing_sticks_out_at_400_pixels(page: Page, tmp_path: Path) -> None:
    page.set_viewport_size({"width": 400, "height": 900})
    long = tree().color_by(pd.DataFrame({"module": ["0.0", "1"], "status": ["a name " * 40, "<b>bad</b>"]}), "status")
    page.goto(opreport(timed(), long, path=tmp_path / "page.html").as_uri())
    legends = page.locator(".nb-graph-legend")
    expect(legends.first).to_contain_text("self_time_us: sum of all in a box")
    expect(legends.last).to_contain_text("<b>bad</b>")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
