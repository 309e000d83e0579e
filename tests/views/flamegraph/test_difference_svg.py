"""The difference of two flamegraphs as a still picture."""

from xml.etree import ElementTree

import pytest

from nbkit.trace.trace import Trace
from nbkit.views.flamegraph.changes import change_words
from nbkit.views.flamegraph.difference import flame_states
from nbkit.views.flamegraph.difference_svg import COLORS, difference_html
from tests.analysis.repeated import nested
from tests.support.fakes import make_ops, make_trace


def drawn(now: Trace, base: Trace) -> tuple[str, dict[str, str]]:
    """The legend, and the color of each box by its tooltip."""
    html = difference_html(flame_states(now, base))
    legend, svg = html.split("</p>", 1)
    boxes = ElementTree.fromstring(svg).iter("g")
    text = "".join(ElementTree.fromstring(f"{legend}</p>").itertext())
    return text, {box.findtext("title") or "": box[1].get("fill") or "" for box in boxes}


def test_only_what_is_beyond_noise_has_a_colour() -> None:
    legend, boxes = drawn(nested(2, slow="blocks.3", by=1.3), nested(1))
    assert legend.split() == (
        "within noise 60 frames slower 1 frame slower, faster: beyond the noise of 10 repeats, 10 before".split()
    )
    ((changed, color),) = [(title, color) for title, color in boxes.items() if color != COLORS["same"]]
    assert changed.startswith("▲ self +2") and "Net.blocks.3 (Block)" in changed and color == COLORS["slower"]
    assert "self time slower: +1" in changed and "beyond noise ±" in changed
    assert all("within noise (" in title for title in boxes if title != changed)


def test_single_recordings_say_that_the_noise_is_unknown() -> None:
    def run(*times: float) -> Trace:
        rows = ({"op": f"op {place}", "total_time_us": time} for place, time in enumerate(times))
        return make_trace(make_ops({"op": "captured", "total_time_us": 500.0}, *rows))

    legend, boxes = drawn(run(100.0, 10.0), run(49.0, 18.0, 7.0))
    assert legend.split()[:13] == "no clear change 2 frames slower 1 frame removed 1 frame one run".split()
    assert "colored: at least 2 times as long or as short, by 0.5 % of all time" in legend
    assert boxes == {
        "captured · 500 µs total · 0 µs (+0.0 %), noise unknown": COLORS["same"],
        "▲ +104 % op 0 · 100 µs total · slower: +51.0 µs (+104.1 %), noise unknown": COLORS["slower"],
        "op 1 · 10.0 µs total · −8.00 µs (−44.4 %), noise unknown": COLORS["same"],
        "removed op 2 · removed, was 7.00 µs": COLORS["removed"],
    }


@pytest.mark.parametrize(
    ("kind", "times", "words"),
    [
        ("same", (50.0, 1.0, 5.0), "within noise (+2.0 %, noise ±10.0 %)"),
        ("same", (5.0, 3.0, 50.0), "within noise (+60.0 %, noise over ±1000 %)"),
        ("faster", (20.0, -10.0, 4.0), "faster: −10.0 µs (−50.0 %), beyond noise ±20.0 %"),
        ("slower", (0.0, 3.0, 2.0), "slower: +3.00 µs, beyond noise ±2.00 µs"),
        ("same", (float("nan"),) * 3, "too short to be judged"),
        ("added", (float("nan"),) * 3, "added"),
    ],
)
def test_words_are_those_of_the_widget(kind: str, times: tuple[float, float, float], words: str) -> None:
    assert change_words(kind, *times, is_own=False, is_judged=True) == words


def test_no_ops_have_no_picture() -> None:
    empty = make_trace(make_ops())
    assert difference_html(flame_states(empty, empty)) == ""


def test_the_picture_is_as_high_as_its_boxes_are_deep() -> None:
    rows = (
        {"op": "step", "total_time_us": 100.0, "self_time_us": 60.0},
        {"op": "inner", "parent_id": 0, "total_time_us": 40.0},
    )
    states = flame_states(make_trace(make_ops(*rows)), make_trace(make_ops(*rows)))
    svg = ElementTree.fromstring(difference_html(states).split("</p>", 1)[1])
    assert (svg.get("viewBox"), svg.get("aria-label")) == (
        "0 0 1000 36",
        "Difference of 100 µs: the 2 widest call paths",
    )
    places = [[rect.get(name) for name in ("x", "y", "width")] for rect in svg.iter("rect")]
    assert places == [["0.00", "0", "999.50"], ["0.00", "18", "399.50"]]
    few = ElementTree.fromstring(difference_html(states, 1).split("</p>", 1)[1])
    assert (few.get("viewBox"), len(list(few.iter("rect")))) == ("0 0 1000 18", 1)
