"""The report of two executions: its first words lead to the row, whose nodes both graphs show."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import nbkit.verbs.registry  # noqa: F401 - the views of the verbs
from nbkit.views.alignment_view import ALIGNMENT_VIEW
from nbkit.views.report.opreport import opreport
from nbkit.views.static_html.view import VIEWS
from tests.views.alignment.makers import aligned_trace


@pytest.fixture
def opened(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Page:
    monkeypatch.setitem(VIEWS, "opalign", ALIGNMENT_VIEW)
    page.goto(opreport(aligned_trace(graphs=True), path=tmp_path / "report.html").as_uri())
    return page


def test_the_first_words_lead_to_the_row_and_its_nodes(opened: Page) -> None:
    opened.locator(".nbkit-front").get_by_role("link", name="aten._softmax.default").click()
    row = opened.locator("#t1-alignment_table .nb-row[aria-selected='true']")
    expect(row.locator("[data-name='status']")).to_have_text("diverges first")
    graphs = opened.locator("#t1-graph")
    expect(graphs.locator(".nb-graph-match")).to_contain_text("aten._softmax ↔ Softmax: differs: diverges first")
    for side in ("left", "right"):
        expect(graphs.get_by_role("region", name=f"{side} graph")).to_contain_text("diverges first1 node")


def test_a_node_selects_its_row(opened: Page) -> None:
    right = opened.locator("#t1-graph").get_by_role("region", name="right graph")
    right.get_by_role("button", name="Outline").click()
    right.get_by_role("treeitem").filter(has_text="Softmax").first.click()
    expect(opened.locator("#t1-alignment_table .nb-detail h3")).to_have_text("#20 softmax ↔ /Softmax_output_0")


def test_without_a_script_the_pairs_stand_side_by_side(opened: Page) -> None:
    text = opened.locator("#t1-alignment_table .nbkit-static-view").text_content() or ""
    assert "left: decoder" in text and "right: decoder.onnx" in text and "diverges first" in text
