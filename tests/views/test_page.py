"""The offline page."""

import base64
import hashlib
import re
from pathlib import Path

import pytest

from nbkit.errors import NbkitError
from nbkit.views.page import page, write_page
from tests.diff_traces import faulty_trace
from tests.fakes import fake_trace, make_ops, make_trace, small_trace, timed_trace


def test_page_has_summary_charts_and_tables(tmp_path: Path) -> None:
    text = write_page(small_trace(name="step"), tmp_path / "out" / "demo.html").read_text(encoding="utf-8")
    assert "<h1>optrace step</h1>" in text
    assert text.count("<svg") == 2
    for title in ("Slowest ops", "Slowest modules", "Phases", "Slowest calls", "First 8 calls"):
        assert f"<caption>{title}</caption>" in text


def test_the_plots_of_the_worst_difference_have_a_line_of_their_own() -> None:
    text = page(faulty_trace())
    assert text.count('<figure class="wide"><svg') == 1
    assert "Worst difference: aten.addmm.default" in text
    assert "<caption>Worst differences</caption>" in text


def test_page_loads_nothing_and_runs_nothing() -> None:
    text = page(small_trace())
    addresses = set(re.findall(r"https?://[^\"' <>]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "<script" not in text
    assert "default-src 'none'" in text


def test_hostile_names_stay_text() -> None:
    name = "</title></ScRiPt></svg><script>alert(1)</script><img src=x onerror=alert(1)>$x_{$"
    text = page(make_trace(make_ops({"op": name, "module": name, "model": name, "source": name}), name=name))
    assert "<script" not in text.lower()
    assert "<img" not in text


def test_trace_without_ops() -> None:
    assert "No op was recorded." in page(make_trace(make_ops()))


def test_unwritable_path_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NbkitError, match=r"Cannot write the page to .*demo\.html: .*; free space or choose"):
        write_page(small_trace(), tmp_path / "file" / "demo.html")
    (tmp_path / "folder.html" / "x").mkdir(parents=True)
    with pytest.raises(NbkitError, match="is a directory"):
        write_page(small_trace(), tmp_path / "folder.html")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder.html"]


def test_page_of_a_timeline_holds_the_live_flamegraph_and_a_still_one() -> None:
    text = page(timed_trace(name="step"))
    assert text.count("<script") == 2
    assert '<div id="nbkit-twin"><svg' in text
    assert 'id="nbkit-live" hidden' in text
    assert "<caption>Memory at its peak</caption>" in text
    assert "Memory allocated over time" in text


def test_the_policy_lets_just_the_pages_own_script_run() -> None:
    text = page(timed_trace())
    (source,) = re.findall(r'<script type="module">(.*?)</script>', text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    assert f'content="{policy}"' in text
    assert not re.search(r"\bexport\b\s*[{d]", source)


def test_the_same_trace_makes_the_same_page() -> None:
    assert page(timed_trace(), base=small_trace()) == page(timed_trace(), base=small_trace())
    assert page(timed_trace(), base=timed_trace()) != page(timed_trace())


def test_hostile_names_of_a_timeline_cannot_break_out() -> None:
    name = "</ScRiPt><script>alert(1)</script><!--\u202e'\"" + "x" * 10_000
    ops = make_ops({"op": name, "module": name, "model": name, "source": name, "level": "range", "input_shapes": name})
    text = page(make_trace(ops, name=name, verb="optime", notes=[name]))
    assert text.lower().count("<script") == 2
    assert text.lower().count("</script") == 2
    assert "<!--" not in text


def test_a_hundred_thousand_events_stay_under_the_budget() -> None:
    text = page(fake_trace(100_000, verb="optime"))
    assert len(text.encode()) < 1_500_000
