"""The graph, single and compared, under 300 random actions, twice: it says nothing, and holds no more after."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser

from nbkit.trace.trace import Trace
from tests.browser.graph.test_graph_pair import pair
from tests.browser.graph_page import GraphPage
from tests.browser.soak import Soaked, soak
from tests.support.fake_graphs import chain_graph, training_graph

# Without those that save a file.
KEYS = (
    *("ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "Enter", " ", "Escape", "p", "o", "c", "0", "+", "-", "i"),
    *("n", "N", "h", "m", "?", "Home", "End", "Shift+ArrowRight", "Shift+ArrowDown"),
)
TRACES: dict[str, Callable[[], Trace]] = {
    "a training step": lambda: training_graph(3),
    "2,000 ops in a line": lambda: chain_graph(2_000),
    "two graphs": pair,
}


@pytest.mark.parametrize(("name", "actions"), [*zip(TRACES, (300, 100, 100), strict=False)])
def test_it_says_nothing_and_holds_no_more(chromium: Browser, name: str, actions: int) -> None:
    page = chromium.new_page(viewport={"width": 1000, "height": 900})
    shown = GraphPage(page, TRACES[name]())
    held = soak(
        Soaked(page.locator("main"), shown.stage.first, shown.search.first, KEYS, ("mm", "layers", "mm(", "zzz")),
        actions=actions,
    )
    assert page.evaluate("window.cleanUp() ?? window.listenerCount()") == 0
    page.close()
    assert held.messages == []
    assert held.grown() == []
