"""All that the static figures show: words, sizes, limits, lines and boxes."""

from typing import Any

import numpy as np
import pytest

from nbkit.trace.captured_values import CapturedResult
from nbkit.views.plots import draw_flame, draw_memory, draw_metrics, plot_metrics
from nbkit.views.plots.difference import draw_difference
from tests.support.fakes import make_ops, make_trace, timed_trace
from tests.views.plots.described import described
from tests.views.plots.test_metrics import logged

ROWS: tuple[dict[str, Any], ...] = (
    {"op": "a<b", "total_time_us": 1000.0, "self_time_us": 300.0},
    {"parent_id": 0, "op": "mm", "total_time_us": 400.0},
    {"parent_id": 0, "op": "mm", "total_time_us": 200.0},
    {"parent_id": 0, "op": "aten.convolution_backward.default", "phase": "backward", "total_time_us": 100.0},
    {"op": "tail", "phase": "odd", "total_time_us": 20.0},
)
OPEN = {"ticks": [8.0, 8.0], "spines": ["left", "bottom"]}
BOXED = {"ticks": [8.0, 8.0], "spines": ["left", "right", "bottom", "top"]}


def test_the_flamegraph() -> None:
    figure = draw_flame(make_trace(make_ops(*ROWS)))
    assert figure.get_size_inches().tolist() == [9.0, pytest.approx(1.28)]
    assert described(figure) == [
        {
            "title": [("Time by call path, heaviest first", 10.0)],
            "x": ("time (ms)", 9.0, [0.0, 1.02]),
            "y": ("", 10.0, [1.5, -0.5]),
            "ticks": [8.0, 8.0],
            "spines": ["bottom"],
            "boxes": [
                ("#3b82f6", 0.0, -0.46, 1.0, 0.92),
                ("#3b82f6", 0.0, 0.54, 0.6, 0.92),
                ("#d97706", 0.6, 0.54, 0.1, 0.92),
                ("#808080", 1.0, -0.46, 0.02, 0.92),
            ],
            "texts": [
                ("a<b", 6.0, 0.0031, 0.0),
                ("mm ×2", 6.0, 0.0031, 1.0),
                ("aten.convolut…", 6.0, 0.6031, 1.0),
            ],
            "legend": ["forward", "backward", "odd"],
        }
    ]


def test_memory() -> None:
    figure = draw_memory(timed_trace())
    assert figure.get_size_inches().tolist() == [6.5, 2.8]
    assert described(figure) == [
        {
            "title": [("Memory allocated over time", 10.0)],
            "x": ("time (ms)", 9.0, [-0.0015, 0.0525]),
            "y": ("allocated (MiB)", 9.0, [-0.0001, 0.0026]),
            **OPEN,
            "lines": [("#3b82f6", "-", "None", [0.001, 0.008, 0.05], [0.0005, 0.0024, 0.0005])],
            "legend": ["cpu, peak 2.50 KiB"],
        }
    ]


def test_memory_that_is_never_freed_stands_on_zero() -> None:
    trace = timed_trace()
    trace.frames["memory"] = trace.memory.assign(allocated_bytes=[2**30, 2**30 + 2**20, 2**30])
    bottom, top = draw_memory(trace).axes[0].get_ylim()
    assert bottom <= 0.0 < 1025.0 < top


def test_metrics_and_what_happened_to_the_graph() -> None:
    stages = [{"graph": "g", "stage": "building plan", "seconds": 1.5}]
    trace = logged("lr", "loss", oneflow={"stages": stages}, error="segfault")
    figure = draw_metrics(trace)
    events = [("#d64545", ":", "None", [step, step], [0.0, 1.0]) for step in (0.0, 20.0)]
    assert figure.get_size_inches().tolist() == [6.5, 2.3]
    assert figure.get_suptitle() == "Training metrics · building plan 1.5 s · crash: segfault"
    assert described(figure) == [
        {
            "title": [("loss", 8.0)],
            "x": ("step", 9.0, [-1.0, 21.0]),
            "y": ("", 10.0, [0.0475, 0.1025]),
            **OPEN,
            "lines": [("#3b82f6", "-", ".", [10.0, 20.0], [0.1, 0.05]), *events],
        },
        {
            "title": [("lr", 8.0)],
            "x": ("step", 9.0, [-1.0, 21.0]),
            "y": ("", 10.0, [0.0475, 0.1025]),
            **OPEN,
            "lines": [("#d97706", "-", ".", [10.0, 20.0], [0.1, 0.05]), *events],
        },
    ]


def test_live_metrics_have_an_axis_each_below_the_other() -> None:
    figure = plot_metrics(logged("lr", "loss", oneflow={}, error="segfault"))
    layout = figure.layout
    assert (layout.title.text, layout.height, layout.showlegend) == ("Training metrics", 380, False)
    assert layout.margin.to_plotly_json() == {"l": 10, "r": 10, "t": 45, "b": 45}
    assert [layout[name].title.text for name in ("xaxis", "xaxis2", "yaxis", "yaxis2")] == ["", "step", "loss", "lr"]
    assert [layout[name].domain for name in ("yaxis", "yaxis2")] == [(0.52, 1.0), (0.0, 0.48)]
    assert layout.xaxis.gridcolor == layout.yaxis2.zerolinecolor == layout.xaxis2.linecolor
    assert layout.xaxis.gridcolor == "rgba(128, 128, 128, 0.3)"
    assert [(line.xaxis, line.yaxis, line.mode, line.marker.size) for line in figure.data] == [
        ("x", "y", "lines+markers", 4),
        ("x2", "y2", "lines+markers", 4),
    ]
    assert [(shape.x0, shape.line.color, shape.line.dash) for shape in layout.shapes] == [(20, "#d64545", "dot")]
    alone = plot_metrics(logged("loss")).layout
    assert (alone.height, alone.xaxis.title.text) == (250, "step")


def test_a_difference() -> None:
    values, expected = np.array([1.0, 2.0, np.nan, np.inf]), np.array([1.0, 3.0, 4.0, 5.0])
    figure = draw_difference(CapturedResult(0, "output", 0, "float32", (2, 2), (2, 2), None, values, expected), "$t")
    assert figure.get_size_inches().tolist() == [10.5, 2.6]
    assert described(figure) == [
        {
            "title": [(r"\$t", 10.0)],
            "x": ("log10 |actual - expected|", 9.0, [-0.55, 0.55]),
            "y": ("elements", 9.0, [0.0, 1.05]),
            **OPEN,
        },
        {
            "x": ("expected", 9.0, [0.8, 5.2]),
            "y": ("actual", 9.0, [0.8, 5.2]),
            **BOXED,
            "lines": [
                ("#d97706", "-", "None", [1.0, 5.0], [1.0, 5.0]),
                ("#3b82f6", "None", ".", [1.0, 3.0], [1.0, 2.0]),
            ],
        },
        {"x": ("errors over the tensor", 9.0, [0.0, 2.0]), "y": ("", 10.0, [2.0, 0.0]), **BOXED},
    ]
    assert [axes.get_subplotspec().colspan.start for axes in figure.axes] == [0, 1, 2]
