"""The picture of a step's memory in a cell is svg of our own: a step is counted sooner than matplotlib is imported."""

import sys
from xml.etree import ElementTree

import torch

import nbkit
from nbkit.views.plots.cost import memory_picture
from nbkit.views.plots.picture.areas_svg import HEIGHT, LEFT, LINE, RIGHT, areas_svg
from nbkit.views.plots.picture.picture import Chart, Picture, Series


def stacked(*heights, **chart):
    series = [Series(f"<{number}>", [0, 5, 10], of, "#16a34a", "area") for number, of in enumerate(heights)]
    return ElementTree.fromstring(areas_svg(Picture("Title", [Chart(series, "x", "y", **chart)])))


def test_areas_stand_on_those_below_them_and_hold_from_one_place_to_the_next():
    base, unit = 2 * LINE + 4 + HEIGHT, HEIGHT / (4 * 1.05)
    middle = (LEFT + RIGHT) / 2
    upper, lower = [path.get("d") for path in stacked([1, 1, 1], [1, 3, 0]).find("g")]
    assert lower == f"M{LEFT:.1f} {base}H{LEFT:.1f}V{base - unit:.1f}H{RIGHT:.1f}V{base}Z"
    assert upper == (
        f"M{LEFT:.1f} {base}H{LEFT:.1f}V{base - 2 * unit:.1f}H{middle:.1f}V{base - 4 * unit:.1f}"
        f"H{RIGHT:.1f}V{base - unit:.1f}H{RIGHT:.1f}V{base}Z"
    )


def test_names_ticks_phases_and_marks_are_texts():
    drawn = stacked([0, 70, 70], upright=[(9, "peak")], bands=[("forward", 0, 5), ("backward", 5, 10)])
    texts = ["".join(text.itertext()).strip() for text in drawn.iter("text")]
    assert texts[0] == "Title" and {"■ <0>", "forward", "backward", "peak", "x", "y"} <= {*texts}
    assert [text for text in texts if text.isdecimal()] == ["0", "2", "4", "6", "8", "10", "0", "20", "40", "60"]


def test_nothing_allocated_is_a_flat_line():
    assert stacked([0, 0, 0]).find("g")[0].get("d").count("V") == 1


def test_a_cell_needs_no_matplotlib(monkeypatch):
    layer = torch.nn.Linear(4, 4)
    trace = nbkit.opcost().run(lambda: layer(torch.ones(2, 4)).sum().backward())
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    drawn = ElementTree.fromstring(memory_picture(trace))
    assert "■ parameter" in "".join(drawn.itertext())
