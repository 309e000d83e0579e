"""Box plots of repeats."""

from statistics import quantiles

import pytest

from nbkit.errors import OptionError
from nbkit.schema import SAMPLES
from nbkit.trace.trace import Trace
from nbkit.views.plots import plot_repeats
from tests.support.fakes import make_ops, make_trace

STEP = [900.0, 1000.0, 1100.0, 1200.0, 5000.0]


def repeated() -> Trace:
    rows = (
        {"level": "range", "op": "step"},
        *({"op": op, "parent_id": 0} for op in ("aten.mm", "aten.mm", "aten.add")),
    )
    trace = make_trace(make_ops(*rows))
    trace.frames["samples"] = SAMPLES.frame(
        [
            {
                "op_id": op_id,
                "repeat": repeat,
                "total_time_us": us,
                "self_time_us": share * us,
                "self_device_time_us": None,
            }
            for repeat, us in enumerate(STEP)
            for op_id, share in enumerate((0.1, 0.25, 0.5, 0.15))
        ]
    )
    return trace


def test_boxes_are_quartiles_and_ends_of_the_repeats() -> None:
    figure = plot_repeats(repeated())
    step, ops = (series for series in figure.data if series.type == "box")
    expected = [each / 1e3 for each in quantiles(STEP, n=4, method="inclusive")]
    assert [step.q1[0], step.median[0], step.q3[0]] == pytest.approx(expected)
    assert [step.lowerfence[0], step.upperfence[0]] == [0.9, 5.0]
    assert list(ops.y) == ["mm", "add"] and list(ops.median) == pytest.approx([1.1 * 0.75, 1.1 * 0.15])
    points = figure.data[1]
    assert list(points.x) == [us / 1e3 for us in STEP] and set(points.y) == {"step"}


def test_the_static_picture_has_the_same_boxes() -> None:
    step, ops = plot_repeats(repeated(), 1).static().axes
    box = step.patches[0]
    assert (box.get_x(), box.get_x() + box.get_width()) == pytest.approx((1.0, 1.2))
    assert [label.get_text() for label in ops.get_yticklabels()] == ["mm"]
    assert (step.get_xlabel(), ops.get_xlabel()) == ("wall time (ms)", "self time of all calls (ms)")


def test_a_single_run_says_what_records_several() -> None:
    with pytest.raises(OptionError, match="has no repeats of the step; `%%optime -r 5`"):
        plot_repeats(make_trace(make_ops()))
