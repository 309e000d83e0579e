"""Who a kernel runs cells for: a reader gets widgets, a file their fallbacks alone."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import start_new_kernel

from nbkit.views.static_html.display import BRIEF
from nbkit.views.static_html.front_end import has_live_front_end, is_headless
from nbkit.views.static_html.mimebundle import WIDGET_VIEW
from tests.support.executed import notebook_of, run

ROOT = Path(__file__).parents[3]
SET_UP = (
    "import psutil; from tests.support.fakes import small_trace, timed_trace; from nbkit import FlameGraph, OpTable"
)
BOXED = "__import__('ipywidgets').VBox([OpTable(small_trace())])"
SHOWN = ["small_trace()", "FlameGraph(timed_trace())", "OpTable(small_trace())"]
LISTENING = "sum(each.status == 'LISTEN' for each in psutil.Process().net_connections('tcp'))"
Bundle = dict[str, Any]


@pytest.fixture(scope="module")
def shown() -> Iterator[Callable[[str], list[Bundle]]]:
    """What a reader's front end gets of the value of a cell: the data of each output."""
    manager, client = start_new_kernel(cwd=str(ROOT))
    client.execute_interactive(SET_UP, timeout=60)

    def bundles(expression: str) -> list[Bundle]:
        found: list[Bundle] = []
        client.execute_interactive(expression, timeout=60, output_hook=lambda each: found.append(each["content"]))
        return [each["data"] for each in found if "data" in each and "metadata" in each]

    yield bundles
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def twins(expression: str) -> set[str]:
    """The forms that need no kernel; a trace has its brief beside them."""
    briefs = {"text/markdown", BRIEF} if expression == "small_trace()" else set()
    return {"text/html", "text/plain", *briefs}


def test_without_a_kernel_nobody_uses_widgets_and_nothing_is_headless():
    assert (has_live_front_end(), is_headless()) == (False, False)


@pytest.mark.parametrize("expression", SHOWN)
def test_a_reader_gets_the_twins_and_then_the_widget(shown, expression):
    first, second = shown(expression)
    assert first.keys() == twins(expression)
    assert (second.keys(), second["text/plain"]) == ({WIDGET_VIEW, "text/plain"}, "")


def test_a_file_gets_the_twins_alone_unless_in_a_box():
    notebook = run(notebook_of([SET_UP, *SHOWN, BOXED]), ROOT)
    *alone, boxed = [cell.outputs[-1].data.keys() for cell in notebook.cells[1:]]
    assert alone == [twins(expression) for expression in SHOWN]
    assert WIDGET_VIEW in boxed  # where a reader looks on all the same


def test_no_port_is_opened_for_what_is_shown(shown):
    before = int(shown(LISTENING)[0]["text/plain"])
    assert before > 0  # the kernel's own
    for expression in SHOWN:
        shown(expression)
    assert int(shown(LISTENING)[0]["text/plain"]) == before


@pytest.mark.parametrize("name", ["op_table", "flamegraph", "diff_table"])
def test_the_code_that_each_widget_brings_is_small(name):
    code = [(ROOT / f"nbkit/views/static/{name}.{kind}").stat().st_size for kind in ("js", "css")]
    assert sum(code) < 100_000
