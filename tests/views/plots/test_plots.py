"""Charts, live and static."""

import re
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from IPython.core.formatters import DisplayFormatter

from nbkit.views.plots import draw_flame, draw_memory, draw_modules, draw_ops, plot_memory, plot_modules, plot_ops
from nbkit.views.static_html.figure_svg import figure_svg
from tests.support.fakes import make_memory, make_ops, make_trace, small_trace, timed_trace


def test_live_ops_are_bars_in_ms_with_the_slowest_on_top() -> None:
    (bars,) = plot_ops(small_trace(), 2).data
    assert list(bars.y) == ["aten.addmm.default", "aten.mm.default"]
    assert list(bars.x) == [0.04, 0.062]
    assert bars.text[1] == "62.0 µs · 1 call"


def test_live_modules_are_split_by_phase() -> None:
    figure = plot_modules(small_trace())
    assert [bars.name for bars in figure.data] == ["forward", "backward", "optimizer"]
    assert figure.layout.barmode == "stack"
    assert list(figure.data[0].y) == ["outside modules", "(root)", "fc"]
    assert list(figure.data[1].x) == [0.0, 0.008, 0.062]


def test_static_twins_show_the_same_bars() -> None:
    axes = draw_ops(small_trace(), 2).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["aten.addmm.default", "aten.mm.default"]
    assert [bar.get_width() for bar in axes.patches] == [0.04, 0.062]
    assert len(draw_modules(small_trace()).axes[0].patches) == 9


def test_live_charts_have_the_background_of_the_page() -> None:
    for plot in (plot_ops, plot_modules, plot_memory):
        layout = plot(timed_trace()).layout
        assert (layout.paper_bgcolor, layout.plot_bgcolor) == ("rgba(0, 0, 0, 0)",) * 2


def test_names_are_neither_markup_nor_formulas() -> None:
    trace = make_trace(make_ops({"op": "<b>$x_{1$", "module": "<b>$y_{$", "model": "M"}))
    assert list(plot_ops(trace).data[0].y) == ["&lt;b&gt;$x_{1$"]
    draw_ops(trace).canvas.draw()
    draw_modules(trace).canvas.draw()


def test_long_names_that_end_alike_keep_their_own_bars() -> None:
    rows = ({"op": f"{n}{'x' * 100}"} for n in range(3))
    assert len(set(plot_ops(make_trace(make_ops(*rows))).data[0].y)) == 3


@pytest.mark.parametrize("plot", [plot_ops, plot_modules, plot_memory, draw_ops, draw_modules, draw_memory, draw_flame])
def test_no_ops_give_an_empty_chart(plot) -> None:
    assert plot(make_trace(make_ops())) is not None


def test_modules_of_a_timeline_hold_the_python_between_their_ops() -> None:
    figure = plot_modules(timed_trace())
    totals = {name: sum(bars.x[place] for bars in figure.data) for place, name in enumerate(figure.data[0].y)}
    assert totals == {"fc": pytest.approx(0.06), "outside modules": pytest.approx(0.065)}


def test_memory_is_a_step_line_per_device_with_its_peak() -> None:
    figure = plot_memory(timed_trace())
    (line,) = figure.data
    assert figure.layout.showlegend and figure.layout.yaxis.title.text == "allocated (MiB)"
    assert (line.name, line.line.shape) == ("cpu, peak 2.50 KiB", "hv")
    assert list(line.x) == [0.001, 0.008, 0.05]
    assert list(line.y) == [512 / 2**20, 2560 / 2**20, 512 / 2**20]
    assert draw_memory(timed_trace()).axes[0].lines[0].get_ydata().max() == 2560 / 2**20


def test_memory_lines_stand_in_the_order_of_their_devices() -> None:
    trace = timed_trace()
    trace.frames["memory"] = trace.memory.assign(device=["cuda:1", "cpu", "cuda:0"])
    assert [line.name.partition(",")[0] for line in plot_memory(trace).data] == ["cpu", "cuda:0", "cuda:1"]


def test_a_long_memory_line_is_thinned_and_keeps_its_peak() -> None:
    trace = timed_trace()
    draw = np.random.default_rng(0)
    trace.frames["memory"] = make_memory(
        *((None, float(n), int(d)) for n, d in enumerate(draw.integers(-9, 10, 30_000)))
    )
    (line,) = plot_memory(trace).data
    assert len(line.x) <= 800
    assert max(line.y) * 2**20 == trace.memory["allocated_bytes"].max()


def test_the_still_flamegraph_stands_on_its_heaviest_box() -> None:
    boxes = draw_flame(timed_trace()).axes[0].patches
    assert [(box.get_x(), box.get_width()) for box in boxes[:2]] == [(0.0, 0.1), (0.0, 0.04)]
    assert len(boxes) == 7


def test_boxes_of_the_still_flamegraph_are_named_where_there_is_room() -> None:
    rows = ({"op": "aten.a_long_name.default", "self_time_us": 10.0}, {"op": "tiny", "self_time_us": 0.1})
    axes = draw_flame(make_trace(make_ops(*rows, {"op": "half", "self_time_us": 10.0}))).axes[0]
    assert [text.get_text() for text in axes.texts] == ["aten.a_long_name.default", "half"]


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_static_figures_save_for_papers(kind: str, tmp_path: Path) -> None:
    for number, draw in enumerate((draw_flame, draw_memory, draw_modules, draw_ops)):
        path = tmp_path / f"{number}.{kind}"
        draw(timed_trace()).savefig(path)
        assert path.stat().st_size > 3_000


def test_hostile_names_of_a_timeline_are_neither_markup_nor_formulas() -> None:
    trace = timed_trace()
    trace.frames["ops"] = trace.ops.assign(op="<b>$x_{1$")
    trace.frames["memory"] = trace.memory.assign(device="<b>$x_{1$")
    draw_flame(trace).canvas.draw()
    draw_memory(trace).canvas.draw()
    assert plot_memory(trace).data[0].name.startswith("&lt;b&gt;$x_{1$")


@pytest.mark.parametrize("plot", [plot_ops, plot_modules, plot_memory])
def test_a_live_figure_in_a_cell_brings_its_still_twin(plot, monkeypatch) -> None:
    monkeypatch.setattr("plotly.io.renderers.default", "plotly_mimetype")
    data, _ = DisplayFormatter().format(plot(timed_trace()))
    assert data["image/svg+xml"].startswith("<svg") and data["text/plain"] in data["image/svg+xml"]
    assert data.keys() == {"application/vnd.plotly.v1+json", "image/svg+xml", "text/plain"}


def test_a_renderer_that_opens_a_window_still_does(monkeypatch) -> None:
    shown: list[object] = []
    monkeypatch.setattr(
        "plotly.io._base_renderers.BrowserRenderer.render", lambda self, figure: shown.append(figure["data"])
    )
    monkeypatch.setattr("plotly.io.renderers.default", "browser")
    assert DisplayFormatter().format(plot_ops(timed_trace())) == ({}, {})
    assert len(shown) == 1


def test_a_copy_that_plotly_makes_has_the_data_alone(monkeypatch) -> None:
    monkeypatch.setattr("plotly.io.renderers.default", "plotly_mimetype")
    data, _ = DisplayFormatter().format(deepcopy(plot_ops(timed_trace())))
    assert data.keys() == {"application/vnd.plotly.v1+json", "text/plain"}


def test_a_phase_with_markup_is_text_in_both_charts_and_leaves_room_for_the_bars() -> None:
    trace = make_trace(make_ops({"phase": "<b>$x_{$"}, {"phase": "y" * 500}))
    assert plot_modules(trace).data[0].name == "&lt;b&gt;$x_{$"
    svg = figure_svg(draw_modules(trace), "p-")
    assert "&lt;b&gt;$x_{$" in svg and "y" * 100 not in svg


def test_letters_that_the_font_lacks_are_written_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    trace = make_trace(make_ops({"op": "模型.加", "self_time_us": 5.0}))
    assert "模型.加" in figure_svg(draw_ops(trace))
    assert [str(warning.message) for warning in recwarn if "Glyph" in str(warning.message)] == []


def test_ids_of_a_picture_are_its_own() -> None:
    one, other = (figure_svg(draw_ops(small_trace()), prefix) for prefix in ("a-", "b-"))
    ids = set(re.findall(r' id="(.*?)"', one))
    assert ids and {name[:2] for name in ids} == {"a-"}
    assert set(re.findall(r'(?:url\(#|href="#)([^")]+)', one)) == ids
    assert one.replace("a-", "b-") == other
    assert "<style" not in one
