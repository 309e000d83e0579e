"""In a real kernel: a cell that `-w` and `-r` run several times."""

import pytest


@pytest.fixture(autouse=True)
def no_runs_yet(kernel):
    kernel.run("n = 0\n_optime = None")


DOORS = {
    "notebook": "%%optime {}\n{}",
    "below another magic": "%%time\n%%optime {}\n{}",
    "direct": "%%optime {}\n%%time\n{}",
}


@pytest.mark.parametrize("cell", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize(
    ("options", "runs", "kept"), [("-r 3", 3, 3), ("-w 2", 3, 0), ("-w 2 -r 3", 5, 3), ("-r 1", 1, 1)]
)
def test_the_cell_runs_that_often_and_shows_its_last_value(kernel, cell, options, runs, kept):
    reply = kernel.run(cell.format(f"-q {options}", "n += 1\nx + n"))
    assert reply.texts("value") == [f"tensor([{runs + 1}., {runs + 1}., {runs + 1}.])"]
    assert kernel.value("n, _optime.meta['warmup'], _optime.meta['repeats']") == (runs, 2 * ("w" in options), kept)


def test_it_runs_once_if_not_asked_for_more(kernel):
    kernel.run("%%optime -q\nn += 1")
    assert kernel.value("n, _optime.meta['repeats'], 'samples' in _optime.frames") == (1, 0, False)


def test_the_frames_of_repeats_are_there(kernel):
    kernel.run("%%optime -q -w 1 -r 4\ny = x + n\nz = y * 2")
    assert kernel.value("len(_optime.samples) == 4 * len(_optime.ops)") is True
    assert kernel.value("set(_optime.timings['repeats']), len(_optime.timings) == len(_optime.ops)") == ({4}, True)


def test_only_the_last_value_is_shown_and_prints_come_each_time(kernel):
    reply = kernel.run("%%optime -q -r 3\nn += 1\nprint(n)\nn * 10")
    assert reply.outputs == [("stdout", "1\n2\n3\n"), ("value", "30")]
    assert kernel.run("%%optime -q -r 3\nn += 1\nn;").outputs == []


@pytest.mark.parametrize("door", ["", "%%time\n"], ids=["notebook", "direct"])
def test_an_error_ends_the_runs_and_keeps_the_trace(kernel, door):
    reply = kernel.run(f"%%optime -r 9 -o t\n{door}n += 1\ny = x + n\nif n == 3:\n    raise KeyError(n)")
    assert (reply.error, kernel.value("n")) == (("KeyError", "3"), 3)
    assert kernel.value("t.complete, t.meta['error']['type'], len(t.ops) > 1, t is _optime") == (
        False,
        "KeyError",
        True,
        True,
    )


def test_an_error_while_warming_up_is_one_sentence(kernel):
    reply = kernel.run("%%optime -w 3\nx + 1\n1 / 0")
    sentence = "%%optime: The cell ended with ZeroDivisionError while it warmed up, so nothing was recorded."
    assert reply.texts("display") == [sentence]
    assert (reply.error[0], kernel.value("_optime.complete, len(_optime.ops)")) == ("ZeroDivisionError", (False, 0))


def test_each_run_awaits(kernel):
    reply = kernel.run("%%optime -q -w 1 -r 3\nn += 1\nasync for value in several(): pass\nawait later(x + n)")
    assert reply.texts("value") == ["tensor([5., 5., 5.])"]
    assert kernel.value("n, any('awaited' in note for note in _optime.meta['notes'])") == (4, True)


def test_loops_functions_and_classes_of_the_cell_keep_their_own_break(kernel):
    loops = "for i in range(9):\n    if i == 2: break\n    continue\nwhile True: break"
    body = f"{loops}\ndef f():\n    for _ in 'a': break\nf()\ni"
    assert kernel.run(f"%%optime -q -r 2\n{body}").texts("value") == ["2"]


def test_the_runs_leave_no_name(kernel):
    names = "sorted(name for name in globals() if name[0] != '_')"
    before = kernel.value(names)
    kernel.run("%%optime -q -r 2\nnew = x + 1\nnew")
    assert sorted(set(kernel.value(names)) - set(before)) == ["new"]


KEEPS = """\
import gc, weakref
held = lambda: None
def make():
    global held
    value = x + n
    held = weakref.ref(value)
    return value
"""


@pytest.mark.parametrize("cell", DOORS.values(), ids=DOORS)
def test_the_value_of_a_run_is_gone_when_the_next_begins(kernel, cell):
    kernel.run(KEEPS)
    kernel.run(cell.format("-q -r 2", "n += 1\nwas_gone = held() is None\nmake()"))
    assert kernel.value("n, was_gone") == (2, True)


@pytest.mark.parametrize("cell", DOORS.values(), ids=DOORS)
def test_the_trace_is_held_by_nobody_else(kernel, cell):
    kernel.run(cell.format("-q -r 2", "y = x + 1"))
    kernel.run("import gc, weakref\nheld = weakref.ref(_optime)\ndel _optime\ngc.collect();")
    assert kernel.value("held() is None") is True


def test_a_cell_inside_a_repeated_cell_runs_as_often(kernel):
    """A verb in it would be counted as the step's work, so that it is refused (test_other_magics.py)."""
    inner = "get_ipython().run_cell('n += 1\\nx * n')"
    reply = kernel.run(f"%%optime -q -r 2 -o outer\n{inner}\nn")
    assert (reply.texts("value")[-1], kernel.value("len(outer.ops) > 0, outer.meta['repeats']")) == ("2", (True, 2))


def test_line_numbers_are_those_of_the_cell(kernel):
    (text,) = kernel.run("%%optime -r 2\ny = x + 1\n\n\ndef bad():\n    raise KeyError('k')\n\nbad()").texts("error")
    number = kernel.value("len(In) - 1")
    assert f"Cell In[{number}], line 8" in text
    assert f"Cell In[{number}], line 6, in bad()" in text
    assert "nbkit/" not in text
