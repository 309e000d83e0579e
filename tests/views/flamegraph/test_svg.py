"""The flame graph as SVG."""

from xml.etree import ElementTree

from nbkit.views.flamegraph.svg import flame_svg
from tests.fakes import fake_trace, make_ops, make_trace, timed_trace


def test_boxes_fill_the_width_and_have_tooltips() -> None:
    root = ElementTree.fromstring(flame_svg(timed_trace()))
    rects = list(root.iter("rect"))
    assert (rects[0].get("x"), rects[0].get("width")) == ("0.00", "768.73")
    assert [title.text for title in root.iter("title")][5] == (
        "aten.add_.Tensor ×2 · optimizer · 15.0 µs total, 15.0 µs self, 11.5 %"
    )
    assert root.get("aria-label") == "Flame graph of 130 µs: the 7 widest call paths"


def test_names_stay_text_and_narrow_boxes_have_none() -> None:
    rows = ({"op": "<script>alert(1)</script>", "total_time_us": 999.0}, {"op": "narrow", "total_time_us": 1.0})
    svg = flame_svg(make_trace(make_ops(*rows)))
    assert "<script" not in svg
    assert [text.text for text in ElementTree.fromstring(svg).iter("text")] == ["<script>alert(1)</script>"]


def test_size_does_not_grow_with_the_trace() -> None:
    assert len(flame_svg(fake_trace(20_000))) < 120_000


def test_no_ops_have_no_picture() -> None:
    assert flame_svg(make_trace(make_ops())) == ""
