"""Hosts that end the connection over a large message, or lose binary data: the data arrive, or a sentence does."""

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Page, expect

from nbkit.schema import OPS
from nbkit.trace.trace import Trace
from nbkit.views.flamegraph.widget import FlameGraph
from nbkit.views.graph.widget import GraphView
from nbkit.views.live import pieces
from nbkit.views.live.widget import STATIC
from nbkit.views.widgets import flame_and_ops
from tests.browser.hosts.limited_host import LimitedHost
from tests.browser.linked_page import drag_range
from tests.support.fake_graphs import training_graph
from tests.support.fakes import timed_trace

PAGE_BYTES = 4_100_000
MOST_CODE = 256 * 1024


def large_trace(count: int = 300_000) -> Trace:
    """Ops one after the other, whose columns take more than a host carries in one message."""
    place = np.arange(count)
    ops = pd.DataFrame(
        {"op_id": place, "op": "aten.mm.default", "level": "aten", "phase": "forward", "thread": 0, "step": 0}
    )
    noise = np.random.default_rng(0).random(count)
    times = {"start_us": place * 2.0, "total_time_us": 1 + noise, "self_time_us": 1 + noise}
    return Trace({"ops": OPS.frame(ops.assign(**times).to_dict("list"))}, {"verb": "optime", "name": "large"})


@pytest.mark.parametrize("has_buffers", [True, False])
def test_all_of_a_large_flame_graph_arrives(page: Page, has_buffers: bool) -> None:
    host = LimitedHost(page, FlameGraph(large_trace()), "flamegraph", has_buffers=has_buffers)
    expect(page.get_by_text("300,000 frames", exact=True)).to_be_visible()
    assert max(host.sizes) < PAGE_BYTES
    assert len(host.sizes) > 2


@pytest.mark.parametrize("has_buffers", [True, False])
def test_flame_graph_and_table_are_linked_without_binary_data(page: Page, has_buffers: bool) -> None:
    host = LimitedHost(page, flame_and_ops(timed_trace()), "composite", has_buffers=has_buffers)
    flame, table = host.widget.models
    expect(page.get_by_text("9 frames", exact=True)).to_be_visible()
    expect(page.locator(".nb-count strong")).to_contain_text("9 ops")
    flame.selected_op_id = 2
    host.tell()
    expect(page.get_by_role("region", name="Selected op")).to_be_visible()
    if not has_buffers:
        page.locator(".nbkit-flamegraph").get_by_role("button", name="Table", exact=True).click()
        page.get_by_role("region", name="Frames as a table").get_by_role("button", name="torch.autograd").first.click()
        expect(page.get_by_role("button", name="show all ops again")).to_contain_text("torch.autograd.backward")
        assert isinstance(flame.selection["ids"], str)
        assert table.filtered["op_id"].tolist() == flame.selected_ids().tolist()


def test_a_range_reaches_the_table_without_binary_data(page: Page) -> None:
    host = LimitedHost(page, flame_and_ops(timed_trace()), "composite", has_buffers=False)
    flame, table = host.widget.models
    expect(page.locator(".nb-count strong")).to_contain_text("9 ops")
    drag_range(page, page.locator(".nbkit-flamegraph"), 0.275, 0.38)
    expect(page.locator(".nb-count strong")).to_contain_text("5 of 9 ops")
    assert isinstance(flame.selected_range["ids"], str)
    assert table.filtered.index.isin(flame.ids_in_range()).all() and len(table.filtered) == 5
    page.get_by_role("button", name="show all ops again").click()
    expect(page.get_by_role("region", name="Selected range")).to_be_hidden()


def test_a_graph_arrives_and_changes_without_binary_data(page: Page) -> None:
    host = LimitedHost(page, GraphView(training_graph(1)), "graph", has_buffers=False)
    expect(page.locator(".nbkit-graph")).to_be_visible()
    before = page.locator(".nbkit-graph").inner_text()
    host.widget.graph = GraphView(training_graph(2)).graph
    host.tell()
    expect(page.locator(".nbkit-graph")).not_to_have_text(before)


def test_a_kernel_that_cannot_answer_is_told_of(page: Page, monkeypatch) -> None:
    monkeypatch.setattr(pieces.Pieces, "_whole", lambda *_: b"damaged")
    LimitedHost(page, FlameGraph(timed_trace()), "flamegraph", has_buffers=False)
    expect(page.get_by_role("status").first).to_contain_text("The data did not arrive: ")


STATIC_VIEW = """name => document.body.append(
  Object.assign(document.createElement('p'), { className: `nbkit-first ${name}`, textContent: 'static' }))"""


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_static_view_is_hidden_while_its_widget_is_drawn(page: Page, monkeypatch, is_whole) -> None:
    if not is_whole:
        monkeypatch.setattr(pieces.Pieces, "_whole", lambda *_: b"damaged")
    host = LimitedHost(page, FlameGraph(timed_trace()), "flamegraph", has_buffers=is_whole)
    page.evaluate(STATIC_VIEW, host.widget.static_class)
    expect(page.get_by_text("9 frames" if is_whole else "The data did not arrive: ").first).to_be_visible()
    expect(page.get_by_text("static", exact=True)).to_be_visible(visible=not is_whole)
    page.evaluate("window.cleanUp()")
    expect(page.get_by_text("static", exact=True)).to_be_visible()


def test_the_end_leaves_no_listener(page: Page) -> None:
    LimitedHost(page, flame_and_ops(timed_trace()), "composite", has_buffers=True)
    assert page.evaluate("window.listenerCount()") > 0
    page.evaluate("window.cleanUp()")
    assert page.evaluate("window.listenerCount()") == 0
    expect(page.locator(".nbkit")).to_have_count(0)


@pytest.mark.parametrize("path", sorted(STATIC.iterdir()), ids=lambda path: path.name)
def test_no_bundle_is_large(path) -> None:
    assert path.stat().st_size <= MOST_CODE
