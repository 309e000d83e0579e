"""`diff`: what it compares of which traces, and its exit status."""

import pytest

from tests.analysis.repeated import nested
from tests.support.fakes import make_ops, make_trace, small_trace


def test_equal_traces_are_equal(nbkit, folder, capsys):
    bare = small_trace()
    bare.frames["tensors"] = bare.tensors.assign(norm=float("nan"))
    bare.save(folder / "a")
    assert nbkit("diff", "a", "a") == 0
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "Calls, shapes, dtypes, modules, findings and verdicts are equal.",
        "",
        "Values were not compared: record both with --values stats for that.",
    ]


@pytest.mark.parametrize(("scale", "status"), [("1.0", 0), ("1.5", 1)])
def test_values_are_compared_where_both_have_them(nbkit, folder, capsys, scale, status):
    code = "import sys, torch\nx = torch.arange(8.0)\n(x * float(sys.argv[1])).exp()\n"
    (folder / "scaled.py").write_text(code)
    for name, value in (("a", "1.0"), ("b", scale)):
        assert nbkit("run", "-q", "--values", "stats", "-o", name, "scaled.py", value) == 0
    assert nbkit("diff", "a", "b") == status
    lines = capsys.readouterr().out.splitlines()
    title = next((index for index, line in enumerate(lines) if line.startswith("where values begin")), None)
    assert (title is None, "Nothing differs beyond rounding." in lines) == (not status, not status)
    assert title is None or "aten.mul.Tensor in outside modules" in lines[title + 1]


def test_a_timing_and_a_record_are_not_compared(nbkit, folder, capsys):
    nested(1).save(folder / "a")
    small_trace().save(folder / "b")
    assert nbkit("diff", "a", "b") == 2
    assert "Only one of the traces is a timing" in capsys.readouterr().err


def test_another_number_of_calls_is_a_difference(nbkit, folder, capsys):
    for name, calls in (("a", 1), ("b", 3)):
        make_trace(make_ops(*[{"op": "aten.mm.default", "module": "head"}] * calls)).save(folder / name)
    assert nbkit("diff", "a", "b") == 1
    left, right, _, title, row = capsys.readouterr().out.splitlines()[:5]
    assert left.startswith("left   a: optrace, op 1, ") and right.startswith("right  b: optrace, ops 3, ")
    assert (title.split(), row.split()) == (
        ["calls", "that", "differ", "left", "right"],
        ["aten.mm.default", "in", "head,", "forward", "1", "3"],
    )


@pytest.mark.parametrize(("factor", "status", "text"), [(1.0, 0, "Nothing differs beyond noise."), (2.0, 1, "slower")])
def test_times_differ_only_beyond_noise(nbkit, folder, capsys, factor, status, text):
    nested(1).save(folder / "a")
    nested(2, slow="blocks.3", by=factor).save(folder / "b")
    assert nbkit("diff", "a", "b") == status
    assert text in capsys.readouterr().out


def test_single_recordings_say_that_the_noise_is_unknown(nbkit, folder, capsys):
    small_trace(verb="optime").save(folder / "a")
    assert nbkit("diff", "a", "a") == 0
    out = capsys.readouterr().out
    assert "The noise is unknown" in out and "whether one is faster is not known" in out


def test_what_is_no_trace_is_one_sentence(nbkit, capsys):
    assert nbkit("diff", "absent", "train.py") == 2
    assert capsys.readouterr().err.startswith("python -m nbkit diff: There is no file or folder absent in ")
