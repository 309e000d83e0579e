"""`report`: traces as one HTML file."""

import pytest

import nbkit as package
from nbkit import progress
from nbkit.findings.finding import Finding, findings_frame
from nbkit.schema import SCHEMA_VERSION
from tests.support.fakes import make_ops, make_trace, small_trace, timed_trace


@pytest.fixture(autouse=True)
def saved(folder):
    timed_trace(name="slow").save(folder / "t")
    small_trace(name="mine").save(folder / "u")


def test_it_is_the_report_of_the_loaded_traces(nbkit, folder, capsys):
    assert nbkit("report", "t", "u", "-o", "out/r.html", "--title", "both") == 0
    traces = [package.load(folder / name) for name in ("t", "u")]
    wanted = package.opreport(*traces, path=folder / "wanted.html", title="both")
    assert (folder / "out/r.html").read_bytes() == wanted.read_bytes()
    out, err = capsys.readouterr()
    assert out.startswith(f"{folder / 'out/r.html'}: 2 traces, ") and out.endswith(" KiB\n")
    assert err == f"nbkit: made the folder {folder / 'out'}\n"


def saved_audit(folder):
    """Saves three traces as `audit -o audited` does."""
    for name in ("step_10", "audit", "step_2"):
        timed_trace(name=f"mine {name}").save(folder / "audited" / name)


def test_a_folder_that_audit_wrote_is_all_its_traces(nbkit, folder):
    saved_audit(folder)
    assert nbkit("report", "audited", "-o", "r.html") == 0
    traces = [package.load(folder / "audited" / name) for name in ("audit", "step_2", "step_10")]
    wanted = package.opreport(*traces, path=folder / "wanted.html").read_bytes()
    assert (folder / "r.html").read_bytes() == wanted
    assert package.opreport(folder / "audited", path=folder / "same.html").read_bytes() == wanted


def test_a_folder_of_many_traces_is_told_in_one_sentence(nbkit, folder, capsys):
    saved_audit(folder)
    for number in range(10):
        small_trace().save(folder / "audited" / f"other{number}")
    assert nbkit("report", "audited", "-o", "r.html") == 2
    sentence = "audited holds 13 traces; name up to 12 of them: audit, other0, other1 ..."
    assert capsys.readouterr().err == f"python -m nbkit report: {sentence}\n"


def test_loading_a_folder_of_traces_names_them(nbkit, folder, capsys):
    saved_audit(folder)
    assert nbkit("load", "audited") == 2
    said = capsys.readouterr().err
    assert "audited is a folder of 3 traces (audit, step_2, step_10); give one of them, such as audited/audit." in said


def test_a_base_and_values_are_handed_on(nbkit, folder):
    assert nbkit("report", "t", "--base", "t", "--values", "-o", "r.html") == 0
    trace = package.load(folder / "t")
    wanted = package.opreport(trace, path=folder / "wanted.html", base=trace, values=True)
    assert (folder / "r.html").read_bytes() == wanted.read_bytes()


@pytest.mark.parametrize(("severities", "status"), [([], 0), (["hint"], 0), (["error"], 1)])
def test_findings_are_an_exit_status_if_asked(nbkit, folder, severities, status):
    trace = small_trace(verb="opdiff")
    trace.frames["findings"] = findings_frame(Finding("mismatch", severity, "it is", "") for severity in severities)
    trace.save(folder / "d")
    assert nbkit("report", "u", "d", "-o", "r.html", "--fail-on-findings") == status
    assert nbkit("report", "u", "d", "-o", "r.html") == 0


def test_who_waits_is_told_what_takes_its_time(nbkit, folder, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "PATIENCE_S", 1e6)
    monkeypatch.delenv("NBKIT_PROGRESS")
    assert nbkit("report", "u", "-o", "r.html") == 0
    assert capsys.readouterr().err == f"nbkit: reading u\nnbkit: writing {folder / 'r.html'}\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["t"], "give -o FILE, the HTML file to write."),
        (["-o", "r.html"], "There is no trace to report; give one or more."),
        (["absent", "-o", "r.html"], "There is no file or folder absent in "),
        (["t", "-o", "t"], "it is a folder; give the name of a file in it."),
        (["t", "-o", "train.py/r.html"], "Cannot write the report to"),
        (["t", "u", "--base", "u", "-o", "r.html"], "base is compared with one trace, and 2 were given"),
        (["t", "--vlaues", "-o", "r.html"], "unknown option '--vlaues'; did you mean '--values'"),
        (["empty", "-o", "r.html"], "No op was recorded, so there is nothing to report"),
        (
            ["newer", "-o", "r.html"],
            f"has format version {SCHEMA_VERSION + 1}, and this nbkit reads format version {SCHEMA_VERSION} only",
        ),
    ],
)
def test_bad_use_is_one_sentence_and_no_file(nbkit, folder, capsys, words, sentence):
    make_trace(make_ops()).save(folder / "empty")
    meta = small_trace().save(folder / "newer") / "meta.json"
    meta.write_text(
        meta.read_text().replace(f'"schema_version": {SCHEMA_VERSION}', f'"schema_version": {SCHEMA_VERSION + 1}')
    )
    assert nbkit("report", *words) == 2
    out, err = capsys.readouterr()
    assert err.startswith("python -m nbkit report: ") and sentence in err
    assert (out, err.count("\n"), (folder / "r.html").exists()) == ("", 1, False)
