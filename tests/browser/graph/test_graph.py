"""The graph in a real browser: folding, keys, pointer, search, selection, other graphs, looks, and its report."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from nbkit.schema import METRICS
from nbkit.trace.trace import Trace
from nbkit.views.report.opreport import opreport
from tests.browser.graph_page import GraphPage
from tests.browser.op_table.test_op_table_looks import DARK, LIGHT, SET_THEME, violations
from tests.support.fake_graphs import EVIL, chain_graph, training_graph


@pytest.fixture
def shown(page: Page) -> GraphPage:
    page.emulate_media(reduced_motion="reduce")
    return GraphPage(page, training_graph(3))


def test_it_opens_down_to_the_layers_and_a_part_opens_by_its_key_in_picture_and_outline(shown: GraphPage) -> None:
    assert shown.names() == ["forward", "embed_tokens", "layers", "lm_head", "backward", "optimizer"]
    shown.fold()
    shown.press("Enter")
    assert shown.names()[:4] == ["forward", "embed_tokens", "layers", "lm_head"]
    expect(shown.status).to_contain_text("forward, 62 nodes, open")
    shown.press("i", "ArrowDown")
    expect(shown.status).to_contain_text("layers, 3 × LlamaDecoderLayer · 60 nodes, closed, in forward")
    shown.press("p", "Enter")
    assert shown.names() == ["forward", "backward", "optimizer"]


def test_the_outline_is_a_tree_that_drives_the_picture(shown: GraphPage) -> None:
    shown.fold()
    shown.row("forward").focus()
    shown.press("ArrowRight", "ArrowRight", "ArrowDown", "Enter")
    expect(shown.row("layers")).to_have_attribute("aria-selected", "true")
    expect(shown.row("layers")).to_be_focused()
    expect(shown.page.get_by_role("heading", name="layers")).to_be_visible()
    assert shown.get("selected_part_id") is not None
    shown.press("ArrowLeft", "ArrowLeft")
    assert shown.names() == ["forward", "backward", "optimizer"]


def test_a_click_selects_and_one_on_the_mark_opens(shown: GraphPage) -> None:
    shown.fold()
    box = shown.stage.bounding_box()
    assert box is not None
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    shown.page.mouse.click(*middle)
    expect(shown.page.get_by_role("heading", name="backward")).to_be_visible()
    shown.page.mouse.dblclick(*middle)
    assert "layers" in shown.names()


def test_a_search_unfolds_to_its_match_and_links_lead_on(shown: GraphPage) -> None:
    shown.search.fill("_softmax$|_softmax.default")
    shown.press("Enter", "Enter")
    expect(shown.page.get_by_text("2 of 3 matches")).to_be_visible()
    shown.stage.focus()
    shown.press("Escape", " ")
    expect(shown.page.get_by_role("heading", name="aten._softmax")).to_be_visible()
    before = shown.get("selected_node_id")
    shown.page.get_by_role("button", name="bmm_").first.click()
    assert shown.get("selected_node_id") != before


def test_ten_thousand_ops_in_one_line_can_be_drawn_and_walked(page: Page) -> None:
    page.emulate_media(reduced_motion="reduce")
    shown = GraphPage(page, chain_graph(10_000))
    assert len(shown.names()) < 60
    shown.search.fill("add_7777")
    shown.press("Enter")
    shown.stage.focus()
    shown.press("ArrowDown", "Enter")
    assert shown.get("selected_node_id") == 7778


def test_a_selected_op_is_revealed_also_in_a_folded_part(page: Page) -> None:
    trace = training_graph(3)
    trace.nodes["op_id"] = trace.nodes["node_id"].astype("Int64")
    shown = GraphPage(page, trace)
    page.evaluate("window.model.set('selected_op_id', 29)")
    expect(page.get_by_role("heading", name="aten._softmax")).to_be_visible()
    assert shown.get("selected_node_id") == 29
    page.evaluate("window.cleanUp()")
    assert page.evaluate("window.listenerCount()") == 0


def test_an_op_that_is_selected_after_a_part_is_what_stays_selected(page: Page) -> None:
    trace = training_graph(3)
    trace.nodes["op_id"] = trace.nodes["node_id"].astype("Int64")
    page.emulate_media(reduced_motion="reduce")  # a row that moves is missed by a click
    shown = GraphPage(page, trace)
    shown.row("optimizer").click()
    page.evaluate("window.model.set('selected_op_id', 29)")
    expect(page.get_by_role("heading", name="aten._softmax")).to_be_visible()
    assert [shown.get(f"selected_{name}_id") for name in ("node", "part", "op")] == [29, None, 29]
    shown.row("optimizer").click()
    page.wait_for_function("window.model.get('selected_node_id') === null")
    assert shown.get("selected_op_id") is None


@pytest.mark.parametrize(("is_light", "variables"), [(True, LIGHT), (False, DARK)])
def test_no_accessibility_violation(shown: GraphPage, is_light: bool, variables: dict[str, str]) -> None:
    shown.page.evaluate(SET_THEME, [is_light, variables])
    shown.stage.focus()
    shown.press("?", "Enter", " ")
    assert violations(shown.page) == []


def test_hostile_names_stay_text_and_nothing_sticks_out_at_360_pixels(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 900})
    trace = training_graph(2)
    trace.nodes["name"] = trace.nodes["module"] = trace.edges["tensor"] = EVIL
    trace.parts["name"] += EVIL
    shown = GraphPage(page, trace)
    page.get_by_role("button", name="Outline").click()
    shown.stage.focus()
    shown.press("Enter", "i", " ")
    assert page.locator("img").count() == 0
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_report_of_a_graph_draws_it_in_place_of_its_outline(page: Page, tmp_path: Path) -> None:
    steps = METRICS.frame({"step": [1, 2], "name": ["loss"] * 2, "value": [2.0, 1.0]})
    graph = training_graph(2, skipped_lines=[{"line": 7, "text": EVIL, "reason": "no record"}])
    graph = Trace({**graph.frames, "metrics": steps}, graph.meta)
    page.goto(opreport(graph, path=tmp_path / "page.html").as_uri())
    expect(page.get_by_role("application")).to_be_visible()
    expect(page.locator(".nbkit-static-view")).to_be_hidden()
    expect(page.locator(".nbkit-bad")).to_contain_text("1 line could not be read")
    expect(page.locator(".charts svg")).to_be_visible()
    assert page.evaluate("window.hacked") is None
