"""The static view of a trace."""

from html.parser import HTMLParser

from nbkit.views.static_html.static_table import static_table
from tests.support.fakes import fake_trace, make_ops, make_trace, small_trace


class Tags(HTMLParser):
    """Tags and texts of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_first_calls_are_shown_with_units_and_missing_marked() -> None:
    texts = Tags(static_table(small_trace())).texts
    first = texts.index("First 8 calls") + 8
    assert texts[first : first + 7] == [
        "0",
        "torch.nn.functional.linear",
        "10.0 µs",
        "fc",
        "forward",
        "—",
        "train.py:7",
    ]
    assert "float32 [2, 8]" in texts


def test_hostile_names_stay_text() -> None:
    name = "</style></ScRiPt><script>alert(1)</script><img src=x onerror=alert(1)>"
    found = Tags(
        static_table(make_trace(make_ops({"op": name, "module": name, "model": name, "source": name}), name=name))
    )
    assert found.tags.isdisjoint({"script", "img"})
    assert found.texts.count(name) >= 4


def test_there_is_no_script_and_no_address() -> None:
    html = static_table(small_trace())
    assert "<script" not in html
    assert "://" not in html


def test_size_does_not_grow_with_the_trace() -> None:
    assert len(static_table(fake_trace(20_000))) < 20_000


def test_trace_without_ops() -> None:
    assert "No op was recorded." in static_table(make_trace(make_ops()))


def test_what_was_left_out_is_said_above_the_calls() -> None:
    texts = Tags(static_table(small_trace(skipped={"<b>vmap": 2}, notes=["no backward pass"]))).texts
    assert texts.index("no backward pass") < texts.index("skipped 2: <b>vmap") < texts.index("First 8 calls")
