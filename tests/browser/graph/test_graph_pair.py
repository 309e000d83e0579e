"""Two compared graphs in a real browser: one selection for both, differences in words, looks, the report."""

import base64
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Locator, Page, expect
from torch import nn

import nbkit
from nbkit.schema import CORRESPONDENCE, EDGES, NODES, PARTS
from nbkit.trace.trace import Trace
from nbkit.views.graph.data import graph_data
from nbkit.views.report.opreport import opreport
from tests.browser.graph.test_graph_overlay import REPLACE
from tests.browser.graph_page import GraphPage
from tests.browser.op_table.test_op_table_looks import DARK, LIGHT, SET_THEME, violations
from tests.support.fake_graphs import EVIL

SAME = {"action": "match", "relation": "same"}
DTYPE = {"action": "match", "relation": "cast", "message": "float32 on the left, float16 on the right"}


def pair(name: str = "block") -> Trace:
    """A block of a norm, a product and a gelu against one whose product is in float16 and behind a cast."""
    ops = [("l", "norm", 0), ("l", "mm", 0), ("l", "gelu", 0), ("r", "norm", 1), ("r", "cast", 1), ("r", "mm", 1)]
    nodes = [
        {"node_id": at, "graph": graph, "kind": "op", "op": op, "name": f"{op}_{name}", "part_id": part}
        for at, (graph, op, part) in enumerate([*ops, ("r", "loss", None)])
    ]
    parts = [{"part_id": at, "graph": side, "name": f"{name} {side}", "nodes": 3} for at, side in enumerate("lr")]
    edges = [{"src": at, "dst": at + 1, "src_port": 0, "dst_port": 0} for at in (0, 1, 3, 4, 5)]
    rows = [
        {"level": "part", "left_id": 0, "right_id": 1, "action": "match"},
        {"level": "op", "left_id": 0, "right_id": 3, **SAME},
        {"level": "op", "left_id": 1, "right_id": 5, **DTYPE},
        {"level": "op", "left_id": 2, "action": "left_only"},
        {"level": "op", "right_id": 4, "action": "right_only", "relation": "cast"},
    ]
    frames = [(NODES, nodes), (PARTS, parts), (EDGES, edges), (CORRESPONDENCE, rows)]
    sides = {side: {"name": f"{side} {name}", "graphs": [side[0]]} for side in ("left", "right")}
    meta = {"verb": "opgraph", "name": "left against right", "source": "two graphs", **sides}
    return Trace({table.name: table.frame(few) for table, few in frames}, meta)


class PairPage(GraphPage):
    """The two graphs of a comparison on a page."""

    def __init__(self, page: Page, trace: Trace) -> None:
        page.emulate_media(reduced_motion="reduce")
        super().__init__(page, trace)
        self.left, self.right = (page.get_by_role("region", name=f"{side} graph") for side in ("left", "right"))
        self.said = page.locator(".nb-graph-match")

    def line(self, side: Locator, name: str) -> Locator:
        return side.get_by_role("treeitem").filter(has_text=name).first


@pytest.fixture
def shown(page: Page) -> PairPage:
    page.set_viewport_size({"width": 1400, "height": 900})
    return PairPage(page, pair())


def test_what_is_selected_in_one_outline_is_selected_in_the_other(shown: PairPage) -> None:
    shown.line(shown.left, "mm").click()
    expect(shown.line(shown.right, "mm")).to_have_attribute("aria-selected", "true")
    expect(shown.said).to_have_text("mm ↔ mm: differs: float32 on the left, float16 on the right.")
    assert [shown.get(f"selected_{name}_id") for name in ("node", "part")] == [1, None]
    shown.line(shown.right, "block r").click()
    expect(shown.line(shown.left, "block l")).to_have_attribute("aria-selected", "true")
    assert [shown.get(f"selected_{name}_id") for name in ("node", "part")] == [None, 1]


def test_what_has_no_counterpart_says_so_and_selects_nothing(shown: PairPage) -> None:
    shown.line(shown.left, "mm").click()
    shown.line(shown.right, "cast").click()
    expect(shown.said).to_have_text("cast has no counterpart on the left: only on the right (cast).")
    expect(shown.left.locator("[aria-selected=true]")).to_have_count(0)
    shown.line(shown.right, "loss").click()
    expect(shown.said).to_have_text("loss has no counterpart on the left: not compared.")


def test_keys_do_the_same_and_a_closed_part_opens(shown: PairPage) -> None:
    shown.right.get_by_role("button", name="Fold").click()
    shown.line(shown.right, "block r").focus()
    shown.press("ArrowLeft")
    expect(shown.line(shown.right, "mm")).to_have_count(0)
    shown.line(shown.left, "block l").focus()
    shown.press("ArrowDown", "ArrowDown", "Enter")
    expect(shown.line(shown.right, "mm")).to_have_attribute("aria-selected", "true")
    expect(shown.line(shown.left, "mm")).to_be_focused()
    shown.left.get_by_role("application").focus()
    shown.press("Escape", "Escape")
    expect(shown.page.locator("[aria-selected=true]")).to_have_count(0)


def test_a_row_that_python_selects_is_shown_on_its_side_and_its_counterpart_on_the_other(shown: PairPage) -> None:
    shown.page.evaluate("window.model.set('selected_node_id', 5)")
    expect(shown.line(shown.right, "mm")).to_have_attribute("aria-selected", "true")
    expect(shown.line(shown.left, "mm")).to_have_attribute("aria-selected", "true")
    assert shown.get("selected_node_id") == 5
    shown.page.evaluate("window.model.set('selected_node_id', null)")
    expect(shown.page.locator("[aria-selected=true]")).to_have_count(0)
    shown.page.evaluate("window.cleanUp()")
    assert shown.page.evaluate("window.listenerCount()") == 0


def test_differences_are_words_in_outline_legend_and_tip(shown: PairPage) -> None:
    assert shown.left.locator(".nb-graph-note").all_inner_texts() == ["≠ inside", "≠ dtype", "only here"]
    legend = shown.right.get_by_role("list", name="Colors").get_by_role("listitem")
    expect(legend).to_have_text(["same1 node", "other dtype1 node", "only here1 node", "differences inside"])
    expect(shown.left.get_by_label("Color", exact=True)).to_have_value("difference")
    shown.line(shown.left, "gelu").click()
    shown.left.get_by_role("application").focus()
    shown.press("ArrowUp", "ArrowDown")
    expect(shown.left.locator(".nb-tip")).to_contain_text("comparedonly on the left")


def test_no_accessibility_violation(shown: PairPage) -> None:
    shown.line(shown.left, "mm").click()
    for is_light, variables in ((True, LIGHT), (False, DARK)):
        shown.page.evaluate(SET_THEME, [is_light, variables])
        assert violations(shown.page) == []


def test_one_stands_below_the_other_where_it_is_narrow_and_long_names_stay_inside(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 900})
    shown = PairPage(page, pair(EVIL))
    shown.left.get_by_role("button", name="Outline").click()
    shown.line(shown.left, "mm").click()
    left, right = shown.left.bounding_box(), shown.right.bounding_box()
    assert left is not None and right is not None
    assert right["y"] >= left["y"] + left["height"] - 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("window.hacked") is None


def timed_pair() -> Trace:
    """Three layers against two slower ones, each colored by its own times."""

    def tree(layers: int) -> nn.Module:
        return nn.Sequential(nn.Sequential(*(nn.Linear(4, 4) for _ in range(layers))), nn.ReLU())

    def times(*values: float) -> pd.DataFrame:
        return pd.DataFrame({"module": [f"0.{at}" for at in range(len(values))], "self_time_us": values})

    both = nbkit.opgraph(tree(3), against=tree(2))
    return both.color_by((times(100.0, 2000.0, 30.0), times(200.0, 9000.0)), "self_time_us")


def test_each_side_is_colored_by_its_own_values_on_one_scale(page: Page) -> None:
    page.set_viewport_size({"width": 1400, "height": 900})
    shown = PairPage(page, timed_pair())
    labels = [side.get_by_role("list", name="Colors").get_by_role("listitem") for side in (shown.left, shown.right)]
    names = [[text for text in side.all_inner_texts() if "plain" not in text] for side in labels]
    assert names[0] == names[1] and names[0][-1] == "from 2.90 ms"
    expect(shown.left.locator(".nb-graph-caption")).to_contain_text("one scale for both sides")
    for side, note in ((shown.left, "2.13 ms"), (shown.right, "9.20 ms")):
        expect(side.get_by_role("treeitem").nth(1)).to_contain_text(note)
    shown.right.get_by_role("treeitem").nth(1).click()
    expect(shown.right.locator(".nb-detail")).to_contain_text("self_time_us9.20 ms")
    expect(shown.left.locator(".nb-detail")).to_contain_text("self_time_us2.13 ms")
    shown.left.get_by_label("Color", exact=True).select_option("difference")
    expect(shown.left.get_by_role("list", name="Colors")).to_contain_text("only here")


def test_colors_of_a_pair_change_in_place_and_what_is_open_and_selected_stays(page: Page) -> None:
    page.set_viewport_size({"width": 1400, "height": 900})
    trace = timed_pair()
    shown = PairPage(page, trace.color_by(None))
    shown.right.get_by_role("treeitem").nth(1).click()
    shown.press("ArrowRight")
    before = shown.right.locator(".nb-graph-outline .nb-graph-name").all_inner_texts()
    assert len(before) > 3
    page.evaluate(REPLACE, base64.b64encode(graph_data(trace)).decode("ascii"))
    expect(shown.right.locator(".nb-graph-caption")).to_contain_text("one scale for both sides")
    expect(shown.right.locator("[aria-selected=true]")).to_have_count(1)
    expect(shown.said).to_contain_text("↔")
    assert shown.right.locator(".nb-graph-outline .nb-graph-name").all_inner_texts() == before


def test_a_report_has_the_pair_and_without_scripts_its_tables(page: Page, tmp_path: Path) -> None:
    page.goto(opreport(pair(), path=tmp_path / "page.html").as_uri())
    left = page.get_by_role("region", name="left graph")
    left.get_by_role("button", name="Outline").click()
    left.get_by_role("treeitem").filter(has_text="mm").click()
    expect(page.locator(".nb-graph-match")).to_contain_text("mm ↔ mm")
    page.goto(opreport(timed_pair(), path=tmp_path / "times.html").as_uri())
    expect(page.locator(".nb-graph-caption")).to_contain_text(["one scale for both sides"] * 2)
    context = page.context.browser.new_context(java_script_enabled=False)  # type: ignore[union-attr]
    plain = context.new_page()
    plain.goto((tmp_path / "page.html").as_uri())
    expect(plain.get_by_text("Correspondence", exact=True)).to_be_visible()
    context.close()
