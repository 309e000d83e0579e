"""In a real kernel: nbkit itself fails, at a fault that is planted in it, and says that it was not the cell."""

import pytest

REPORT = "Please open an issue with this text, the traceback and what `python -m nbkit info` prints."


@pytest.fixture
def plant(kernel):
    """Takes a function of nbkit away in the kernel, until the test is over."""
    planted = []

    def take_away(module, name):
        planted.append((module, name))
        code = f"import importlib; m = importlib.import_module({module!r}); kept = m.{name}; m.{name} = None"
        assert kernel.run(code).status == "ok"

    yield take_away
    for module, name in planted:
        kernel.run(f"importlib.import_module({module!r}).{name} = kept")


def test_while_the_cell_warmed_up(kernel, plant):
    plant("nbkit.capture.profiler.kineto_recording", "CollectiveRecording")
    reply = kernel.run("%%optime -w 2\nran = x + 1")
    (text,) = reply.texts("display")
    assert text.startswith("%%optime: nbkit itself failed (TypeError: 'NoneType' object is not callable, at nbkit/")
    assert text.endswith(f"), not the code of the cell; nothing was recorded. {REPORT}")
    assert (reply.error[0], kernel.value("ran.tolist()")) == ("TypeError", [2.0, 2.0, 2.0])


def test_before_the_cell_ran(kernel, plant):
    kernel.run("ran = 0")
    plant("nbkit.capture.recorder.recorder", "ModuleCalls")
    reply = kernel.run("%%optrace\nran = 1")
    (text,) = reply.texts("stderr")
    assert text.startswith("%%optrace: nbkit itself failed (TypeError: 'NoneType' object is not callable, at nbkit/")
    assert text.endswith(f") before the cell began: it did not run. {REPORT}\n")
    assert (reply.error[0], kernel.value("ran")) == ("TypeError", 0)


@pytest.mark.parametrize("door", ["", "%%time\n"], ids=["notebook", "direct"])
def test_after_the_cell_had_run_its_value_is_shown_all_the_same(kernel, plant, door):
    plant("nbkit.capture.recorder.recorder", "build")
    reply = kernel.run(f"%%optrace -o t\n{door}x + 1")
    assert (reply.status, reply.texts("value")) == ("ok", ["tensor([2., 2., 2.])"])
    text = "".join(reply.texts("stderr"))
    assert "recorder.py" in text and "Traceback" in text
    assert f") after the cell had run, which changes nothing of it; there is no trace. {REPORT}\n" in text
    assert kernel.value("t is _optrace, t.frames, t.complete") == (True, {}, False)


def test_after_an_error_of_the_cell_that_error_is_shown(kernel, plant):
    plant("nbkit.capture.recorder.recorder", "build")
    reply = kernel.run("%%optrace\nfails()")
    assert reply.error == ("ValueError", "no")
    assert "nbkit itself failed" in "".join(reply.texts("stderr"))


def test_a_run_that_is_refused_is_no_error_of_the_cell(kernel):
    kernel.run("profiler = torch.profiler.profile()")
    reply = kernel.run("%%optime -w 1\nprofiler.start()")
    kernel.run("profiler.stop()")
    sentence = "%%optime: A run was refused, so nothing was recorded; the error of this cell says why."
    assert reply.texts("display") == [sentence]
    assert "UsageError: %%optime: A profiler is running in this thread already" in "".join(reply.texts("stderr"))
    assert kernel.value("_optime.meta['error']['type']") == "OptionError"
    assert kernel.value("_optime.meta['error']['failed_in_nbkit']") is None
