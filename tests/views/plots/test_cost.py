"""Charts of an opcost trace: memory by kind, cost by module and op, roofline."""

from collections import OrderedDict, defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import nbkit
from nbkit.errors import OptionError
from nbkit.schema.cost import STORAGE_KINDS
from nbkit.views.plots import draw_cost, draw_memory, draw_roofline, plot_cost, plot_memory, plot_roofline
from nbkit.views.plots.cost import cost_pictures, memory_picture
from nbkit.views.plots.thinned import seen_rows
from tests.support.costs import layers, with_times


def test_memory_is_stacked_by_kind_up_to_the_peak() -> None:
    figure = plot_memory(layers())
    stack = np.sum([line.y for line in figure.data], axis=0) * 2**10
    assert [line.name for line in figure.data] == [
        kind for kind in STORAGE_KINDS if kind in set(layers().storages["kind"])
    ]
    assert stack.max() == layers().memory["allocated_bytes"].max()
    assert figure.layout.yaxis.title.text == "allocated (KiB)"
    assert "peak 21.2 KiB, optimizer state 9.56 KiB, " in figure.layout.title.text


def test_phases_and_the_peak_are_marked() -> None:
    figure = plot_memory(layers())
    bands = [(shape.x0, shape.x1, shape.fillcolor) for shape in figure.layout.shapes if shape.type == "rect"]
    assert [color for _, _, color in bands][-3:] == ["#3b82f6", "#d97706", "#16a34a"]
    assert [before[1] + 1 for before in bands[:-1]] == [after[0] for after in bands[1:]]
    (line,) = (shape for shape in figure.layout.shapes if shape.type == "line")
    assert line.x0 == nbkit.memory_peaks(layers().memory)["op_id"][0]
    assert {"forward", "backward", "optimizer", "peak"} <= {note.text for note in figure.layout.annotations}


def test_the_static_stack_has_the_same_layers() -> None:
    axes = draw_memory(layers()).axes[0]
    named = [text.get_text() for text in axes.get_legend().get_texts()]
    assert named == [line.name for line in plot_memory(layers()).data][::-1]
    assert axes.get_title(loc="left").startswith("Memory on cpu: peak 21.2 KiB")
    assert {text.get_text().strip() for text in axes.texts} == {"forward", "backward", "optimizer", "peak"}
    (peak,) = (line for line in axes.lines if line.get_xdata()[0] == line.get_xdata()[1])
    assert peak.get_xdata()[0] == nbkit.memory_peaks(layers().memory)["op_id"][0]


def test_thin_pieces_as_wide_as_each_other_keep_the_peak_and_the_ends() -> None:
    draw = np.random.default_rng(0)
    places = np.sort(draw.integers(0, 10**6, 5_000))
    values = draw.integers(0, 10**9, 5_000)
    rows = seen_rows(values, 50, places)
    assert len(rows) <= 200 and {0, 4_999, int(values.argmax()), int(values.argmin())} <= set(rows.tolist())
    widths = np.diff(places[rows])
    assert widths.max() <= 10**6 / 50 * 2


@pytest.mark.parametrize("shape", ["treemap", "sunburst"])
@pytest.mark.parametrize("by", ["flops", "moved_bytes", "saved_bytes", "params"])
def test_boxes_hold_no_less_than_what_is_in_them(by: str, shape: str) -> None:
    (boxes,) = plot_cost(layers(), by, shape=shape).data  # type: ignore[arg-type]
    values, inside = dict(zip(boxes.ids, boxes.values, strict=True)), defaultdict(float)
    for parent, value in zip(boxes.parents, boxes.values, strict=True):
        inside[parent] += value
    assert inside.keys() - {""} <= values.keys()
    assert all(total <= values[parent] * (1 + 1e-9) for parent, total in inside.items() if parent)
    assert boxes.branchvalues == "total" and boxes.type == shape


def test_the_whole_is_that_of_the_step_and_layers_are_one_box() -> None:
    (boxes,) = plot_cost(layers()).data
    assert boxes.values[0] == layers().costs["flops"].sum()
    assert "blocks.* ×4" in boxes.labels and "blocks.0" not in boxes.labels
    (apart,) = plot_cost(layers(), fold=False).data
    assert {"0", "1", "2", "3"} <= set(apart.labels)


def test_the_icicle_has_a_box_for_each_row_below_what_holds_it() -> None:
    (boxes,) = plot_cost(layers()).data
    axes = draw_cost(layers()).axes[0]
    patches = axes.patches
    assert sorted(patch.get_width() for patch in patches) == sorted(boxes.values[1:])
    rows = defaultdict(list)
    for patch in patches:
        rows[round(patch.get_y() + 0.46)].append((patch.get_x(), patch.get_x() + patch.get_width()))
    assert axes.get_ylim() == (len(rows) - 0.5, -0.5) and axes.get_xlim()[1] == max(rows[0])[1]  # the whole is above
    for depth in range(1, len(rows)):
        holders = rows[depth - 1]
        assert all(any(a <= x and y <= b + 1e-6 for a, b in holders) for x, y in rows[depth])
        ends = sorted(rows[depth])
        assert all(left[1] <= right[0] + 1e-6 for left, right in pairwise(ends))


def test_a_model_of_many_modules_is_drawn_with_few_boxes() -> None:
    model = nn.ModuleDict({f"branch{number}": nn.Linear(4, 4 + number) for number in range(210)})
    trace = nbkit.opcost().run(lambda: [layer(torch.ones(2, 4)) for layer in model.values()])
    (boxes,) = plot_cost(trace).data
    assert 100 < len(boxes.ids) <= 401


def test_hostile_names_are_neither_markup_nor_formulas() -> None:
    model = nn.Sequential(OrderedDict({"<b>$x_{1$": nn.Linear(4, 4), "y" * 300: nn.Linear(4, 4)}))
    trace = nbkit.opcost().run(lambda: model(torch.ones(2, 4)))
    (boxes,) = plot_cost(trace).data
    assert "&lt;b&gt;$x_{1$" in boxes.labels and max(map(len, boxes.labels)) < 60
    draw_cost(trace).canvas.draw()


def test_roofs_and_ops_are_drawn_on_logarithmic_axes() -> None:
    figure = plot_roofline(with_times(layers()))
    assert (figure.layout.xaxis.type, figure.layout.yaxis.type) == ("log", "log")
    bandwidth, compute = figure.data[:2]
    assert (bandwidth.name, compute.name) == ("954 MiB/s", "float32: 1.00 GFLOP/s")
    np.testing.assert_allclose(np.divide(bandwidth.y, bandwidth.x), 1e9)
    assert bandwidth.x[1] == pytest.approx(1.0) == compute.x[0]
    assert {marks.name for marks in figure.data[2:]} <= {"compute bound", "memory bound", "launch bound"}


def test_the_names_of_roofs_stand_at_their_lines() -> None:
    axes = draw_roofline(with_times(layers())).axes[0]
    slope, flat = axes.lines
    at = {text.get_text(): text.xy for text in axes.texts}
    x, y = at["954 MiB/s"]
    assert slope.get_xdata()[0] < x < slope.get_xdata()[1] and y / x == pytest.approx(1e9)
    assert at["float32: 1.00 GFLOP/s"] == (flat.get_xdata()[0], flat.get_ydata()[0])
    places = [tuple(place) for marks in axes.collections for place in marks.get_offsets().tolist()]
    assert at["mm"] in places and at["threshold_backward"] in places


def test_what_is_not_known_is_refused_in_one_sentence() -> None:
    with pytest.raises(OptionError, match=r"by='flop' is not an amount of a cost; .*flops"):
        plot_cost(layers(), "flop")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="by='time_us' needs predicted times; give opcost a device"):
        plot_cost(layers(), "time_us")
    with pytest.raises(OptionError, match="shape='pie' is not a way to draw costs"):
        plot_cost(layers(), shape="pie")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="has no predicted times"):
        plot_roofline(layers())


def test_pictures_are_small_and_have_ids_of_their_own(tmp_path: Path) -> None:
    html = cost_pictures(layers())
    assert html.count("<svg") == 2 and memory_picture(layers()) in html
    assert len(html) < 90_000 and "http" not in html


def test_a_step_without_ops_or_that_computes_nothing_gives_empty_charts() -> None:
    trace = nbkit.opcost().run(lambda: None)
    assert plot_memory(trace) is not None and draw_memory(trace) is not None and draw_cost(trace) is not None
    assert plot_cost(trace) is not None
    moved = with_times(nbkit.opcost().run(lambda: torch.ones(4).clone()))
    assert len(draw_roofline(moved).axes[0].lines) == len(plot_roofline(moved).data) == 0
