"""In a real kernel: what `%opreport` writes and shows, and what a bad line does."""

import pytest


@pytest.fixture(autouse=True)
def recorded(kernel, tmp_path):
    kernel.run(f"%cd -q {tmp_path}\n%unload_ext nbkit\n%load_ext nbkit")
    kernel.run("%%optrace -q -o first\nx + 1")
    kernel.run("%%optime -q -o timed\nx * 2")


def test_the_file_is_what_the_function_writes_and_is_told(kernel, tmp_path):
    reply = kernel.run("%opreport first timed -o 'out/my report.html' --title 'a <b>'")
    (_, note), (kind, text) = reply.outputs
    assert note == f"made the folder {tmp_path / 'out'}" and kind == "display"
    assert text.startswith("out/my report.html: 2 traces, ") and text.endswith("KiB")
    kernel.run("import nbkit; nbkit.opreport(first, timed, path='wanted.html', title='a <b>')")
    assert (tmp_path / "out/my report.html").read_bytes() == (tmp_path / "wanted.html").read_bytes()


def test_the_last_trace_of_a_verb_has_a_name(kernel, tmp_path):
    assert kernel.run("%opreport _optime --base timed --values -o r.html").status == "ok"
    assert "flamegraph" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize("line", ["--help", "-h", "first --help"])
def test_help_is_shown_and_nothing_written(kernel, tmp_path, line):
    ((_, text),) = kernel.run(f"%opreport {line}").outputs
    assert "usage: %opreport" in text and "-o FILE" in text
    assert list(tmp_path.iterdir()) == []


def test_it_is_listed_and_explained(kernel):
    assert "%opreport" in kernel.run("%lsmagic").outputs[0][1].split()
    assert kernel.run("%opreport?").status == "ok"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("-o r.html", "There is no trace to report; give one or more."),
        ("first", "give -o FILE, the HTML file to write."),
        ("frist -o r.html", "there is no 'frist'; did you mean 'first'?"),
        ("x -o r.html", "x is no trace but a Tensor; "),
        ("first --base frist -o r.html", "there is no 'frist'; did you mean 'first'?"),
        ("first -o /dev/null/r.html", "Cannot write the report to /dev/null/r.html: "),
        ("first -o .", "it is a folder; give the name of a file in it."),
        ("first --vlaues -o r.html", "unknown option '--vlaues'; did you mean '--values'"),
        ("first -o 'r.html", 'cannot read the options "first -o \'r.html": no closing quotation; close the quote.'),
    ],
)
def test_a_bad_line_is_one_red_line_and_no_file(kernel, tmp_path, line, message):
    reply = kernel.run(f"%opreport {line}")
    ((kind, text),) = reply.outputs
    assert (reply.status, reply.error[0], kind) == ("error", "UsageError", "stderr")
    assert text.startswith("UsageError: %opreport: ") and message in text
    assert text.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
