"""In a real kernel: what a cell showed is freed when it runs again, is deleted, or its widget is closed."""

import pytest

COUNTING = """\
import gc, ipywidgets, nbkit
from nbkit.trace.trace import Trace
from nbkit.views.live.widget import ShownWidget
def alive():
    gc.collect()
    found = gc.get_objects()
    return sum(type(each) is Trace for each in found), sum(isinstance(each, ShownWidget) for each in found)
def opened():
    return sum(isinstance(each, ShownWidget) for each in ipywidgets.Widget.widgets.values())
"""
CELL = "%%optime -w 1 -r 2\ny = (x * 2).sum()"
OTHER = "%%optrace -o other\ny = x + 1"


@pytest.fixture(autouse=True)
def nothing_shown(kernel):
    kernel.run("_optime = _optrace = trace = other = table = None", cellId="reset")
    kernel.run(COUNTING + "ipywidgets.Widget.close_all()", deletedCells=["a", "b", "c"], cellId="reset")
    assert kernel.value("alive()") == (0, 0)


def test_a_cell_that_runs_again_ends_what_it_showed_before(kernel):
    kernel.run(CELL, cellId="a")
    first = kernel.value("alive()")
    for _ in range(3):
        kernel.run(CELL, cellId="a")
    assert kernel.value("alive()") == first
    assert kernel.value("opened()") == 1


def test_a_widget_of_another_cell_stays(kernel):
    kernel.run(OTHER, cellId="a")
    kernel.run("display(other)", cellId="b")
    kernel.run("1", cellId="a")
    assert kernel.value("opened()") == 1
    kernel.run("get_ipython().run_cell('1')", cellId="c", deletedCells=["b"])
    assert kernel.value("opened()") == 0


def test_a_cell_inside_a_cell_ends_nothing_of_its_run(kernel):
    kernel.run("display(nbkit.opgraph(torch.nn.ReLU()))\nget_ipython().run_cell('1')", cellId="a")
    assert kernel.value("opened()") == 1


def test_del_and_close_free_a_trace_and_its_widget(kernel):
    kernel.run("%%optrace -q -o trace\ny = x + 1", cellId="a")
    kernel.run("table = nbkit.OpTable(trace)\ndisplay(table)", cellId="b")
    assert kernel.value("opened()") == 1
    kernel.run("table.close()\ndel table, trace, _optrace", cellId="c")
    assert kernel.value("alive()") == (0, 0)


def test_a_closed_widget_that_a_trace_had_is_made_anew(kernel):
    kernel.run(OTHER, cellId="a")
    kernel.run("ipywidgets.Widget.close_all()", cellId="b")
    assert kernel.value("opened()") == 0
    assert "optrace: 2 ops" in kernel.run("display(other)", cellId="b").texts("display")[0]
    assert kernel.value("opened()") == 1


def test_a_front_end_that_names_no_cell_keeps_what_it_shows(kernel):
    kernel.run(CELL)
    kernel.run(CELL)
    assert kernel.value("opened()") == 2
