"""`info`: this machine, or how a trace was made."""

import json

import torch

from tests.support.fakes import small_trace
from tests.support.jobs import save_job


def test_the_versions_are_those_of_a_bug_report(nbkit, capsys):
    assert nbkit("info") == 0
    known = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert known["torch"] == torch.__version__
    assert set(known) == {"nbkit", "torch", "python", "recorder", "devices"}
    assert known["devices"].startswith("cpu")


def test_what_is_known_of_a_trace(nbkit, folder, capsys):
    small_trace(name="a\x1b[31mb", skipped={"why": 3}).save(folder / "t")
    assert nbkit("info", "t") == 0
    lines = capsys.readouterr().out.splitlines()
    assert r"name           a\x1b[31mb" in lines
    assert lines[lines.index("skipped") + 1].split() == ["why", "3"]
    assert nbkit("info", "t", "--json") == 0
    known = json.loads(capsys.readouterr().out)
    assert (known["skipped"], known["frames"]["ops"]) == ({"why": 3}, f"{len(small_trace().ops)} rows")


def test_of_a_long_list_the_first_are_told_and_json_has_all(nbkit, folder, capsys):
    small_trace(skipped_lines=[f"line {number}" for number in range(30)]).save(folder / "t")
    assert nbkit("info", "t") == 0
    said = capsys.readouterr().out
    assert "skipped_lines\n  line 0\n" in said
    assert "  line 19\n  … 10 more; --json has them all\n" in said and "line 20" not in said
    assert nbkit("info", "t", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["skipped_lines"]) == 30


def test_what_is_no_trace_is_one_sentence(nbkit, capsys):
    assert nbkit("info", "train.py") == 2
    assert capsys.readouterr().err.startswith("python -m nbkit info: train.py is not a trace")


def test_a_job_of_ranks_counts_the_rows_of_all(nbkit, folder, capsys):
    save_job(folder / "job", 2)
    assert nbkit("info", "job") == 0
    out = capsys.readouterr().out
    assert "16 rows" in out and "4 rows" in out and "Ranks 2 and 3 of 4 are missing." in out
