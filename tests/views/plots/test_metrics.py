"""The chart of training metrics, live and still."""

import pytest

from nbkit.errors import OptionError
from nbkit.schema import METRICS
from nbkit.trace.trace import Trace
from nbkit.views.plots import draw_metrics, plot_metrics


def logged(*names: str, **meta: object) -> Trace:
    rows = [{"step": step, "name": name, "value": 1.0 / step} for name in names for step in (10, 20)]
    return Trace({"metrics": METRICS.frame(rows)}, {"verb": "opgraph", "complete": True, **meta})


def test_each_metric_has_its_own_axes_loss_first() -> None:
    trace = logged("lr", "<b>total_loss $x$")
    figure = plot_metrics(trace)
    assert [line.name for line in figure.data] == ["&lt;b&gt;total_loss $x$", "lr"]
    assert [line.yaxis for line in figure.data] == ["y", "y2"]
    assert (figure.layout.xaxis.title.text, figure.layout.xaxis2.title.text) == ("", "step")
    assert plot_metrics(logged("lr")).layout.xaxis.title.text == "step"
    assert [axes.get_title(loc="left") for axes in draw_metrics(trace).axes] == [r"<b>total_loss \$x\$", "lr"]


def test_it_has_the_background_of_the_page() -> None:
    layout = plot_metrics(logged("lr", "loss")).layout
    assert (layout.paper_bgcolor, layout.plot_bgcolor) == ("rgba(0, 0, 0, 0)",) * 2


def test_what_happened_to_the_graph_is_marked() -> None:
    stages = [{"graph": "g", "stage": "building plan", "seconds": 1.5}]
    trace = logged("loss", oneflow={"stages": stages}, error="segfault\nin a kernel")
    texts = [note.text for note in plot_metrics(trace).layout.annotations]
    assert texts == ["building plan 1.5 s", "crash: segfault\\nin a kernel"]
    assert draw_metrics(trace).get_suptitle() == " · ".join(["Training metrics", *texts])


def test_names_of_metrics_stand_beside_none_of_the_others() -> None:
    figure = draw_metrics(logged(*(f"a metric with quite a long name, {number}" for number in range(4))))
    figure.draw_without_rendering()
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    assert len(boxes) == 4
    assert not any(one.overlaps(other) for at, one in enumerate(boxes) for other in boxes[:at])


def test_more_metrics_than_fit_are_said_to_be_left_out() -> None:
    trace = logged(*(f"m{number}" for number in range(9)))
    assert len(plot_metrics(trace).data) == 6
    assert draw_metrics(trace).get_suptitle() == "Training metrics, 6 of 9"


def test_a_trace_without_metrics_says_so() -> None:
    trace = Trace({}, {"verb": "opgraph"})
    with pytest.raises(OptionError, match="^This trace has no metrics; traces of OneFlow logs have, and an audit has"):
        plot_metrics(trace)
    assert len(draw_metrics(trace).axes[0].lines) == 0
