"""Charts, live and static."""

import pytest

from nbkit.views.plots import draw_modules, draw_ops, plot_modules, plot_ops
from tests.fakes import make_ops, make_trace, small_trace


def test_live_ops_are_bars_in_ms_with_the_slowest_on_top() -> None:
    (bars,) = plot_ops(small_trace(), 2).data
    assert list(bars.y) == ["aten.addmm.default", "aten.mm.default"]
    assert list(bars.x) == [0.04, 0.062]
    assert bars.text[1] == "62.0 µs · 1 call"


def test_live_modules_are_split_by_phase() -> None:
    figure = plot_modules(small_trace())
    assert [bars.name for bars in figure.data] == ["forward", "backward", "optimizer"]
    assert list(figure.data[0].y) == ["outside modules", "(root)", "fc"]
    assert list(figure.data[1].x) == [0.0, 0.008, 0.062]


def test_static_twins_show_the_same_bars() -> None:
    axes = draw_ops(small_trace(), 2).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["aten.addmm.default", "aten.mm.default"]
    assert [bar.get_width() for bar in axes.patches] == [0.04, 0.062]
    assert len(draw_modules(small_trace()).axes[0].patches) == 9


def test_names_are_neither_markup_nor_formulas() -> None:
    trace = make_trace(make_ops({"op": "<b>$x_{1$", "module": "<b>$y_{$", "model": "M"}))
    assert list(plot_ops(trace).data[0].y) == ["&lt;b&gt;$x_{1$"]
    draw_ops(trace).canvas.draw()
    draw_modules(trace).canvas.draw()


def test_long_names_that_end_alike_keep_their_own_bars() -> None:
    rows = ({"op": f"{n}{'x' * 100}"} for n in range(3))
    assert len(set(plot_ops(make_trace(make_ops(*rows))).data[0].y)) == 3


@pytest.mark.parametrize("plot", [plot_ops, plot_modules, draw_ops, draw_modules])
def test_no_ops_give_an_empty_chart(plot) -> None:
    assert plot(make_trace(make_ops())) is not None
