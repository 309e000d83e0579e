"""`load`: a trace as text, rows of its frames, CSV."""

import pickle

import pytest

import nbkit as package
from nbkit.findings.finding import Finding, findings_frame
from tests.support.fakes import small_trace
from tests.support.jobs import save_job
from tests.support.snapshots import grown


@pytest.fixture(autouse=True)
def saved(folder):
    small_trace(name="mine").save(folder / "t")


def test_a_trace_is_summed_up(nbkit, folder, capsys):
    assert nbkit("load", "t") == 0
    assert capsys.readouterr().out == package.load(folder / "t").summary() + "\n"


def test_rows_are_sorted_and_cut(nbkit, capsys):
    assert (
        nbkit("load", "t", "--frame", "modules", "--sort", "params", "--columns", "module,params", "--head", "1") == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines[:2]] == ["params", "64"]
    assert lines[2] == "1 more row; --head N shows N"


def test_a_frame_without_rows_says_its_columns(nbkit, folder, capsys):
    package.Trace({"ops": package.schema.OPS.frame()}).save(folder / "empty")
    assert nbkit("load", "empty", "--frame", "ops", "--columns", "op_id,op") == 0
    assert capsys.readouterr().out == "no rows; columns: op_id, op\n"


def test_csv_is_clean_on_stdout_and_whole_in_a_file(nbkit, folder, capsys):
    words = ("load", "t", "--frame", "ops", "--columns", "op_id,phase")
    assert nbkit(*words, "--head", "1", "--csv", "-") == 0
    assert capsys.readouterr().out == "op_id,phase\n0,forward\n"
    assert nbkit(*words, "--csv", "rows.csv") == 0
    assert len((folder / "rows.csv").read_text().splitlines()) == 1 + len(small_trace().ops)


def test_a_chrome_trace_becomes_a_folder(nbkit, folder):
    small_trace(name="mine").export_chrome_trace(folder / "t.json")
    assert nbkit("load", "t.json", "--save", "again") == 0
    assert package.load(folder / "again").ops["op"].tolist() == small_trace().ops["op"].tolist()


def test_a_memory_snapshot_is_summed_up_written_and_refused_if_it_is_cut(nbkit, folder, capsys):
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(grown()))
    assert nbkit("load", "snapshot.pickle") == 0
    assert "Peak of 12.0 KiB on cuda:0 after 10.0 µs, by train.py:8 (50.0 %)" in capsys.readouterr().out
    assert nbkit("load", "snapshot.pickle", "--frame", "blocks", "--columns", "state,size_bytes", "--csv", "-") == 0
    assert capsys.readouterr().out.splitlines()[1] == "active_allocated,4096"
    assert nbkit("report", "snapshot.pickle", "-o", "report.html") == 0
    assert "report.html: 1 trace, " in capsys.readouterr().out
    path.write_bytes(path.read_bytes()[:-40])
    assert nbkit("load", "snapshot.pickle") == 2
    assert "snapshot.pickle cannot be read: it is cut off; expected a memory snapshot" in capsys.readouterr().err


@pytest.mark.parametrize(("severities", "status"), [([], 0), (["hint"], 0), (["error"], 1)])
def test_findings_are_an_exit_status_if_asked(nbkit, folder, severities, status):
    trace = small_trace(verb="opdiff")
    trace.frames["findings"] = findings_frame(Finding("mismatch", severity, "it is", "") for severity in severities)
    trace.save(folder / "d")
    assert nbkit("load", "d", "--fail-on-findings") == status
    assert nbkit("load", "d") == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["absent"], "There is no file or folder absent in "),
        (["train.py"], "train.py is not a trace"),
        (["t", "--frame", "opps"], "This trace has no frame 'opps'; did you mean 'ops'?"),
        (["t", "--frame", "ops", "--sort", "self_time"], "There is no column 'self_time'; did you mean 'self_time_us'"),
        (["t", "--frame", "ops", "--columns", "opp"], "There is no column 'opp'; did you mean 'op'"),
        (["t", "--head", "3"], "--head is about the rows of one frame; give --frame, too"),
        (["t", "--frame", "ops", "--csv", "train.py/rows"], "train.py is no folder; choose another place."),
        (["t", "u"], "'u' is one argument too many"),
        ([], "PATH is missing."),
    ],
)
def test_bad_use_is_one_sentence(nbkit, capsys, words, sentence):
    assert nbkit("load", *words) == 2
    out, err = capsys.readouterr()
    assert err.startswith("python -m nbkit load: ") and sentence in err
    assert (out, err.count("\n")) == ("", 1)


def test_forward_and_backward_times_are_rows_too(nbkit, folder, capsys):
    assert nbkit("load", "t", "--frame", "op_times", "--sort", "backward_us", "--csv", "-") == 0
    expected = package.op_times(package.load(folder / "t")).sort_values("backward_us", ascending=False, kind="stable")
    assert capsys.readouterr().out == expected.to_csv(index=False, lineterminator="\n")
    assert len(expected) > 1


def test_a_job_is_summed_up_and_its_rows_have_their_rank(nbkit, folder, capsys):
    save_job(folder / "job", 3)
    assert nbkit("load", "job") == 0
    assert capsys.readouterr().out.startswith("3 of 4 ranks: wall time 1.10 ms at the median")
    words = ("load", "job", "--frame", "ops", "--columns", "rank,op_id,self_time_us")
    assert nbkit(*words, "--sort", "self_time_us", "--head", "2") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[:3] == [["rank", "op_id", "self_time_us"], ["2", "6", "262"], ["2", "1", "240"]]
    assert " ".join(lines[3]) == "22 more rows; --head N shows N"
    assert nbkit(*words, "--csv", "rows.csv") == 0
    written = (folder / "rows.csv").read_text().splitlines()
    assert len(written) == 25 and written[0] == "rank,op_id,self_time_us" and written[1].startswith("0,0,10.0")
    assert nbkit(*words, "--csv", "-", "--head", "1") == 0
    assert capsys.readouterr().out == "rank,op_id,self_time_us\n0,0,10.0\n"
    assert nbkit("load", "job", "--frame", "ranks", "--columns", "rank,state") == 0
    assert "missing" in capsys.readouterr().out


def test_what_a_job_does_not_have_is_refused(nbkit, folder, capsys):
    save_job(folder / "job", 2)
    for words, text in (
        (("--frame", "opz"), "This job has no frame 'opz'; did you mean 'ops'?"),
        (("--frame", "ops", "--sort", "sped"), "The table has no column 'sped'"),
        (("--frame", "op_times"), "op_times are of one process; give one rank, such as"),
    ):
        assert nbkit("load", "job", *words) == 2
        assert text in capsys.readouterr().err


def test_a_report_of_a_job_is_one_chapter(nbkit, folder, capsys):
    save_job(folder / "job", 3)
    assert nbkit("report", "job", "-o", "job.html") == 0
    assert "1 trace" in capsys.readouterr().out and "Ops of rank 2, the slowest" in (folder / "job.html").read_text()
    assert nbkit("diff", "job", "job") == 2
    assert "left is a job of 4 ranks, and this looks at one process" in capsys.readouterr().err
