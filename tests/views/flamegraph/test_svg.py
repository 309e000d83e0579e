"""The flame graph as SVG."""

from xml.etree import ElementTree

from nbkit.views.flamegraph.svg import flame_svg
from tests.support.fakes import fake_trace, make_ops, make_trace, timed_trace


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


def test_the_whole_picture() -> None:
    rows = (
        {"op": "a<b", "total_time_us": 1000.0, "self_time_us": 300.0},
        {"parent_id": 0, "op": "mm", "total_time_us": 400.0},
        {"parent_id": 0, "op": "mm", "total_time_us": 200.0},
        {"parent_id": 0, "op": "aten.convolution_backward.default", "phase": "backward", "total_time_us": 100.0},
        {"op": "tail", "phase": "odd", "total_time_us": 20.0},
    )
    svg, opacity, text = flame_svg(make_trace(make_ops(*rows))), 'fill-opacity=".35"', 'fill="currentColor"'
    head, *boxes = svg.removesuffix("</svg>").split("<g>")
    assert head == (
        '<svg viewBox="0 0 1000 36" width="100%" role="img" '
        'aria-label="Flame graph of 1.02 ms: the 4 widest call paths" '
        'font-family="system-ui,sans-serif" font-size="11" style="display:block">'
    )
    assert boxes == [
        "<title>a&lt;b · forward · 1.00 ms total, 300 µs self, 98.0 %</title>"
        f'<rect x="0.00" y="0" width="979.89" height="17" fill="#3b82f6" {opacity}/>'
        f'<text x="3.00" y="13" {text}>a&lt;b</text></g>',
        "<title>mm ×2 · forward · 600 µs total, 600 µs self, 58.8 %</title>"
        f'<rect x="0.00" y="18" width="587.74" height="17" fill="#3b82f6" {opacity}/>'
        f'<text x="3.00" y="31" {text}>mm ×2</text></g>',
        "<title>aten.convolution_backward.default · backward · 100 µs total, 100 µs self, 9.8 %</title>"
        f'<rect x="588.24" y="18" width="97.54" height="17" fill="#d97706" {opacity}/>'
        f'<text x="591.24" y="31" {text}>aten.convolut…</text></g>',
        "<title>tail · odd · 20.0 µs total, 20.0 µs self, 2.0 %</title>"
        f'<rect x="980.39" y="0" width="19.11" height="17" fill="#808080" {opacity}/></g>',
    ]
