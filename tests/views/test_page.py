"""The offline page."""

import re
from pathlib import Path

import pytest

from nbkit.errors import NbkitError
from nbkit.views.page import page, write_page
from tests.fakes import make_ops, make_trace, small_trace


def test_page_has_summary_charts_and_tables(tmp_path: Path) -> None:
    text = write_page(small_trace(name="step"), tmp_path / "out" / "demo.html").read_text(encoding="utf-8")
    assert "<h1>optrace step</h1>" in text
    assert text.count("<svg") == 2
    for title in ("Slowest ops", "Slowest modules", "Phases", "Slowest calls", "First 8 calls"):
        assert f"<caption>{title}</caption>" in text


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
