"""The page of a report, as text."""

import base64
import hashlib
import re

from nbkit.views.panels.panel import Contents
from nbkit.views.report.opreport import STATIC, report_page
from nbkit.views.static_html.style import STYLE
from tests.support.diff_traces import faulty_trace
from tests.support.fakes import fake_trace, make_ops, make_trace, small_trace, timed_trace

HOSTILE = (
    "</title></ScRiPt></svg><script>alert(1)</script><img src=x onerror=alert(1)><!--$x_{$\u202e'\"" + "x" * 10_000
)


def page(*traces, **settings) -> str:
    return report_page([Contents(trace, **settings) for trace in traces])


def test_one_trace_gives_the_page_its_name_and_has_summary_charts_and_tables() -> None:
    text = page(small_trace(name="step"))
    assert "<title>step, Net</title>" in text and "<h1>step, Net</h1>" in text
    assert "<h2>" not in text
    assert text.count("<figure><svg") == 2
    for title in ("Slowest ops", "Slowest modules", "Phases", "Slowest calls", "First 8 calls"):
        assert f"<caption>{title}</caption>" in text


def test_several_traces_stay_apart_and_are_listed() -> None:
    text = page(small_trace(name="run"), small_trace(name="run"), timed_trace())
    assert "<h1>Report of 2 recordings</h1>" in text
    contents = text[text.index('<nav aria-label="Contents">') : text.index("</nav>")]
    assert re.findall(r'<li><a href="(.*?)">(.*?)</a>', contents) == [
        ("#t1", "1. optrace run"), ("#t2", "2. optrace run"), ("#t3", "3. optime")
    ]  # fmt: skip
    assert re.findall(r'<section class="nbkit-trace" id="(.*?)"><h2>(.*?)</h2>', text) == [
        ("t1", "1. optrace run"), ("t2", "2. optrace run"), ("t3", "3. optime")
    ]  # fmt: skip


def test_every_link_leads_somewhere_and_every_id_is_there_once() -> None:
    text = page(small_trace(), timed_trace(), faulty_trace())
    ids = re.findall(r' id="(.*?)"', text)
    assert set(re.findall(r'href="#(.*?)"', text)) <= set(ids)
    assert sorted(ids) == sorted(set(ids))


def test_a_page_opens_with_the_brief_and_says_first_that_a_trace_is_incomplete() -> None:
    error = {"type": "ValueError", "message": "no <b>", "source": "train.py:3", "op_id": 1}
    text = page(small_trace(verb="opcheck", checked_tensors=3, complete=False, error=error))
    parts = (
        "<h1>",
        "<b>Incomplete</b>: ValueError: no &lt;b&gt; (at op 1, train.py:3)",
        "Nothing wrong found until then.",
        "Not looked at: ",
        ">incomplete</a>",
        '<section class="nbkit-trace"',
        "<dt>What ran</dt>",
        "<footer>",
    )
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert text.count("Not looked at: ") == text.count("<b>Incomplete</b>") == 1


def test_a_title_can_be_given() -> None:
    text = report_page([Contents(small_trace())], title="a <b>\u202e")
    assert "<h1>a &lt;b&gt;\\u202e</h1>" in text


def test_it_loads_nothing_and_runs_nothing_but_its_own_script() -> None:
    text = page(small_trace(), timed_trace())
    addresses = set(re.findall(r"https?://[^\"' <>`]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    (source,) = re.findall(r'<script type="module">(.*?)</script>', text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    assert f'content="{policy}"' in text


def test_styles_cannot_end_their_element_early() -> None:
    assert "</" not in STYLE + (STATIC / "report.css").read_text(encoding="utf-8")


def test_the_same_traces_make_the_same_page() -> None:
    assert page(timed_trace(), faulty_trace()) == page(timed_trace(), faulty_trace())
    assert page(timed_trace(), base=small_trace()) == page(timed_trace(), base=small_trace())
    assert page(timed_trace(), base=timed_trace()) != page(timed_trace())


def test_hostile_names_cannot_break_out() -> None:
    names = dict.fromkeys(("op", "module", "model", "source", "input_shapes", "phase", "device"), HOSTILE)
    plain, hostile = (
        page(make_trace(make_ops({**of, "level": "range"}), name=name, verb="optime", notes=[name]))
        for of, name in (({}, "x"), (names, HOSTILE))
    )
    for piece in ("<script", "</script", "<img", "<!--"):
        assert hostile.lower().count(piece) == plain.lower().count(piece)


def test_a_trace_without_ops_says_so_beside_others() -> None:
    text = page(make_trace(make_ops(), complete=False, error={"type": "ValueError", "message": "no"}), small_trace())
    assert text.count("No op was recorded.") == 1
    assert "ValueError: no" in text


def test_a_hundred_thousand_events_stay_under_the_budget() -> None:
    assert len(page(fake_trace(100_000, verb="optime")).encode()) < 1_500_000
