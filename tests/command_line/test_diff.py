"""`diff`: what it compares of which traces, and its exit status."""

import pytest

from tests.analysis.repeated import nested
from tests.fakes import make_ops, make_trace, small_trace


def test_equal_traces_are_equal(nbkit, folder, capsys):
    small_trace().save(folder / "a")
    assert nbkit("diff", "a", "a") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "Nothing differs."


def test_another_number_of_calls_is_a_difference(nbkit, folder, capsys):
    for name, calls in (("a", 1), ("b", 3)):
        make_trace(make_ops(*[{"op": "aten.mm.default", "module": "head"}] * calls)).save(folder / name)
    assert nbkit("diff", "a", "b") == 1
    *_, title, row = capsys.readouterr().out.splitlines()
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
    assert "The noise is not known" in out and "Nothing differs" not in out


def test_what_is_no_trace_is_one_sentence(nbkit, capsys):
    assert nbkit("diff", "absent", "train.py") == 2
    assert capsys.readouterr().err.startswith("python -m nbkit diff: There is no absent;")
