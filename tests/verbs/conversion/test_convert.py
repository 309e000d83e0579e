"""convert: one file or a folder of ranks, in one process or several, as a function and as a subcommand."""

import re
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

import nbkit
from nbkit.command_line.main import main
from nbkit.errors import OptionError, TraceError
from nbkit.verbs.conversion import convert, once
from tests.readers.exports import slice_, written

pytest.importorskip("duckdb")


def rank(path, number, **around):
    events = [slice_("cpu_op", "aten::add", 10.0 * at, 5.0, External_id=at) for at in range(number + 1)]
    return written(path, events, distributedInfo={"backend": "gloo", "rank": number}, **around)


@pytest.fixture
def job(tmp_path):
    """Makes a folder of three files, whose names are in another order than their ranks."""
    folder = tmp_path / "job"
    folder.mkdir()
    for name, number in (("c.json", 0), ("b.json.gz", 1), ("a.json", 2)):
        rank(folder / name, number, packed=name.endswith("gz"))
    (folder / "notes.txt").write_text("no trace")
    return folder


def ops_by_rank(out):
    return {folder.name: len(nbkit.load(folder).ops) for folder in out.iterdir()}


def test_a_file_becomes_the_folder_beside_it(tmp_path):
    path = rank(tmp_path / "run.pt.trace.json", 2)
    out = nbkit.convert(path)
    assert out == tmp_path / "run"
    pd.testing.assert_frame_equal(nbkit.load(out).ops, nbkit.load(path).ops)


@pytest.mark.parametrize("words", [(), ("--workers", "2")], ids=["one process", "two processes"])
def test_a_folder_becomes_one_of_ranks(job, capsys, words):
    out = job.parent / "ranks"
    assert main(["convert", str(job), "-o", str(out), *words]) == 0
    assert ops_by_rank(out) == {"rank=0": 1, "rank=1": 2, "rank=2": 3}
    text = capsys.readouterr().out
    assert re.match(rf"Converted 3 files to {re.escape(str(out))} in \d+ s: rank=0 to rank=2; open one with", text)


def test_any_executor_converts(job):
    with ThreadPoolExecutor(2) as executor:
        out = nbkit.convert(job, job.parent / "ranks", executor)
    assert ops_by_rank(out) == {"rank=0": 1, "rank=1": 2, "rank=2": 3}


def test_files_that_name_no_rank_are_numbered(job):
    rank(job / "d.json", 2)
    assert set(ops_by_rank(nbkit.convert(job))) == {"rank=0", "rank=1", "rank=2", "rank=3"}
    assert (job.parent / "job-converted").is_dir()


def test_a_task_of_srun_converts_its_share(job, monkeypatch, capsys):
    monkeypatch.setenv("SLURM_PROCID", "1")
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "2")
    out = job.parent / "ranks"
    assert main(["convert", str(job), "-o", str(out)]) == 0
    assert ops_by_rank(out) == {"rank=1": 2}
    assert "Converted 1 file of 3, the share of this task of srun, to" in capsys.readouterr().out


def test_a_damaged_file_costs_no_other(job, capsys):
    (job / "d.json").write_text('{"traceEvents": [{"ph": "X"')
    (job / "e.json").write_text("")
    out = job.parent / "ranks"
    with pytest.raises(SystemExit, match="2"):
        main(["convert", str(job), "-o", str(out)])
    text = capsys.readouterr().err
    assert "d.json is cut off after 0 events" in text
    assert "e.json is empty" in text
    assert text.endswith("3 other files of 5 converted.\n")
    assert len(ops_by_rank(out)) == 3


def test_bad_input_is_one_sentence(tmp_path, job, monkeypatch):
    mine = tmp_path / "mine"
    mine.mkdir()
    for path, options, text in (
        (tmp_path / "absent", {}, "There is no file or folder .*absent; check the path"),
        (mine, {}, "mine holds no Chrome trace"),
        (5, {}, "There is no path 5; give that of a Chrome trace"),
        (job / "a.json", {"out": mine}, "mine exists and is not a trace; choose another name"),
        (job / "notes.txt", {}, "notes.txt is not a trace"),
    ):
        with pytest.raises(TraceError, match=text):
            nbkit.convert(path, **options)
    with pytest.raises(OptionError, match="executor=2 runs nothing; give one of concurrent.futures, or None"):
        nbkit.convert(job, executor=2)
    monkeypatch.setattr(convert, "is_installed", lambda: False)
    with pytest.raises(TraceError, match=r'needs DuckDB, .*: pip install "nbkit-torch\[ranks\]"'):
        nbkit.convert(job)
    with pytest.raises(SystemExit, match="2"):
        main(["convert", str(job), "--workers", "0"])


def test_a_large_file_is_converted_once_and_that_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("NBKIT_CACHE", str(tmp_path / "cache"))
    path = rank(tmp_path / "run.json", 2)
    expected = nbkit.load(path)
    monkeypatch.setattr(once, "LARGE_BYTES", 10)
    first = nbkit.load(path)
    pd.testing.assert_frame_equal(first.ops, expected.ops)
    (folder,) = (tmp_path / "cache" / "traces").iterdir()
    note = f"The file was converted once, to {folder}, which is read in its place while the file stays as it is."
    assert first.meta["notes"] == [note]
    monkeypatch.setattr(once, "convert_file", None)  # a second conversion would raise
    assert len(nbkit.load(path).ops) == 3


def test_a_large_file_that_has_changed_or_has_no_place_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv("NBKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(once, "LARGE_BYTES", 10)
    path = rank(tmp_path / "run.json", 2)
    nbkit.load(path)
    assert len(nbkit.load(rank(path, 5)).ops) == 6
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NBKIT_CACHE", str(tmp_path / "file"))
    trace = nbkit.load(path)
    assert len(trace.ops) == 6
    assert not trace.meta["notes"]
