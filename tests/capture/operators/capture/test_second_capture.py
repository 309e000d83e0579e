"""A second capture into a folder loses nothing of the first."""

import pytest
import torch

import nbkit
from tests.capture.operators.folders import captured, records

X = torch.arange(3.0)


def names(folder):
    return [record["op"] for record in records(folder)]


def test_the_first_is_renamed_and_the_note_says_so(tmp_path):
    folder = tmp_path / "calls"
    assert captured(folder, X.exp).meta["notes"] == []
    trace = captured(folder, X.sin)
    assert trace.meta["notes"] == ["The calls that were in calls are in calls-1 now; replace=True deletes them."]
    captured(folder, X.cos)
    found = {path.name: names(path) for path in tmp_path.iterdir()}
    expected = {"calls-1": "aten.exp.default", "calls-2": "aten.sin.default", "calls": "aten.cos.default"}
    assert found == {name: [op] for name, op in expected.items()}
    assert nbkit.opreplay(tmp_path / "calls-1").meta["identical_calls"] == 1


def test_replace_deletes_it(tmp_path):
    folder = tmp_path / "calls"
    captured(folder, X.exp)
    assert captured(folder, X.sin, replace=True).meta["notes"] == []
    assert [path.name for path in tmp_path.iterdir()] == ["calls"]
    assert names(folder) == ["aten.sin.default"]
    with pytest.raises(nbkit.OptionError, match="replace must be True or False, got 'yes'"):
        nbkit.opcapture(folder, replace="yes")


def test_what_is_being_written_and_what_is_no_capture_stays(tmp_path):
    folder = tmp_path / "calls"
    with nbkit.opcapture(folder) as trace:
        X.exp()
        with pytest.raises(nbkit.TraceError, match="Another opcapture is writing"), nbkit.opcapture(folder):
            pass
    assert len(trace.captures) == 1 and [path.name for path in tmp_path.iterdir()] == ["calls"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(nbkit.TraceError, match="holds no captured calls; choose another name"):
        captured(tmp_path / "mine", X.exp)
    assert (tmp_path / "mine" / "notes.txt").read_text() == "keep"


def test_a_link_stays_one(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "calls").symlink_to(tmp_path / "disk")
    captured(tmp_path / "calls", X.exp)
    captured(tmp_path / "calls", X.sin)
    assert (tmp_path / "calls").is_symlink()
    assert (names(tmp_path / "calls"), names(tmp_path / "disk-1")) == (["aten.sin.default"], ["aten.exp.default"])
