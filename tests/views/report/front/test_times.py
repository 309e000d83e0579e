"""The time of a step, and where it went."""

import re

from nbkit.views.panels.panel import Contents
from nbkit.views.report.chapter import chapters
from nbkit.views.report.front.times import NOT_TIMED, step_time, times_html
from tests.support.fakes import make_ops, make_trace, small_trace, timed_trace


def drawn(trace):
    (chapter,) = chapters([Contents(trace)])
    return times_html(chapter)


def texts(html):
    return [re.sub(r"<.*?>", " ", item).split() for item in re.findall(r"<li>(.*?)</li>", html)]


def widths(html):
    return [float(width) for width in re.findall(r"width:([\d.]+)%", html)]


def test_the_step_time_is_the_median_of_the_repeats():
    assert step_time(timed_trace()) == ("100 µs", "per step, the median of 5 runs (IQR 4.00 µs, min 97.0 µs)")


def test_a_timeline_has_a_single_run_and_a_recording_no_time_of_a_step():
    trace = timed_trace()
    del trace.frames["timings"]
    assert step_time(trace) == ("100 µs", "a single run; how far runs differ is not known")
    assert step_time(small_trace()) == ("", NOT_TIMED)


def test_phases_are_one_bar_and_modules_bars_of_the_same_scale():
    html = drawn(timed_trace())
    assert texts(html) == [
        ["forward", "24.0", "%"], ["backward", "56.0", "%"], ["optimizer", "12.0", "%"], ["other", "8.0", "%"],
        ["fc", "60.0", "µs,", "48.0", "%"], ["outside", "modules", "65.0", "µs,", "52.0", "%"],
    ]  # fmt: skip
    assert widths(html) == [24.0, 56.0, 12.0, 8.0, 48.0, 52.0]


def test_times_of_a_recorder_are_shares_only():
    assert texts(drawn(small_trace()))[3:] == [
        ["fc", "85.0", "%"],
        ["(root)", "10.8", "%"],
        ["outside", "modules", "4.2", "%"],
    ]


def test_without_modules_the_slowest_ops_are_shown():
    html = drawn(make_trace(make_ops({"op": "a", "self_time_us": 3.0}, {"op": "b", "self_time_us": 1.0})))
    assert "Slowest ops" in html
    assert texts(html)[1:] == [["a", "75.0", "%"], ["b", "25.0", "%"]]


def test_without_times_there_is_nothing_to_draw():
    assert drawn(make_trace(make_ops({"op": "a", "self_time_us": 0.0}))) == ""
