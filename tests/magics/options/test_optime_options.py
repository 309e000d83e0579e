"""In a real kernel: what the options of `%%optime` do, what a bad one does, and that the profiler is not heard."""

import pytest


def test_the_first_and_the_next_recording_print_nothing(kernel):
    assert kernel.run("%%optime -q -r 2\ny = x + 1").outputs == []
    # What a C++ library writes to stderr arrives late: in the cell that runs then.
    assert kernel.run("time.sleep(0.5)").outputs == []
    assert kernel.run("%%optime -q --memory --shapes --stacks\ny = x + 1").outputs == []
    assert kernel.run("time.sleep(0.5)").outputs == []


def test_the_last_trace_is_kept_and_shown_between_output_and_value(kernel):
    reply = kernel.run("%%optime -o trace --name 'a run'\nprint('mine')\nx + 1")
    assert [kind for kind, _ in reply.outputs] == ["stdout", "display", "value"]
    assert kernel.value("trace is _optime, trace.meta['verb'], trace.meta['name']") == (True, "optime", "a run")
    kernel.run("%%optime -q\nx * 2")
    assert kernel.value("trace is _optime, 'aten.mul.Tensor' in set(_optime.ops['op'])") == (False, True)


@pytest.mark.parametrize(
    ("option", "expression"),
    [
        ("--memory", "len(t.memory)"),
        ("--shapes", "int(t.ops['input_shapes'].notna().sum())"),
        ("--stacks", "int((t.ops['source'].notna() & (t.ops['level'] == 'api')).sum())"),
    ],
)
def test_an_option_records_more(kernel, option, expression):
    kernel.run(f"%%optime -q -o t {option}\ntorch.nn.functional.relu(x) @ x")
    assert kernel.value(expression) > 0
    kernel.run("%%optime -q -o t\ntorch.nn.functional.relu(x) @ x")
    assert kernel.value(expression if option != "--memory" else "len(t.frames.get('memory', ()))") == 0


def test_the_cpu_alone_is_a_device(kernel):
    kernel.run("%%optime -q --device cpu\nx + 1")
    assert kernel.value("_optime.meta['devices']") == ["cpu"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-r two", "argument -r/--repeats: 'two' is not a count; give a whole number from 1 up."),
        ("-w -1", "argument -w/--warmup: '-1' is not a count; give a whole number from 0 up."),
        ("-r 2.5", "'2.5' is not a count"),
        ("-r", "argument -r/--repeats: expected one argument"),
        ("--repaets 2", "unknown option '--repaets'; did you mean '--repeats'"),
        ("--device tpu", "device='tpu' is not known; did you mean"),
        ("-r 2 --memry", "unknown option '--memry'; did you mean '--memory'"),
        ("--save /dev/null", "/dev/null exists and is not a trace"),
    ],
)
@pytest.mark.parametrize("end", ["", "%%time\n"], ids=["wrapped", "direct"])
def test_a_bad_option_fails_the_cell_before_it_runs(kernel, options, message, end):
    reply = kernel.run(f"%%optime {options}\n{end}ran = True")
    ((kind, text),) = reply.outputs
    assert (reply.status, reply.error[0], kind) == ("error", "UsageError", "stderr")
    assert message in text
    assert text.startswith("UsageError: %%optime: ")
    assert text.count("\n") == 1
    assert kernel.value("'ran' in globals()") is False


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ("%%optime", "The cell is empty, so nothing was recorded."),
        ("%%optime -r 2\n# later\n", "The cell is empty, so nothing was recorded."),
        ("%%optime\na = 1", "No op ran in the thread of this cell, so the trace is empty."),
        ("%%optime\n1 / 0", "No op ran before the cell ended with ZeroDivisionError, so the trace is empty and"),
    ],
)
def test_nothing_recorded_is_one_sentence(kernel, cell, sentence):
    (text,) = kernel.run(cell).texts("display")
    assert text.startswith(f"%%optime: {sentence}")
    assert "\n" not in text


def test_a_block_that_the_user_named_is_shown_without_any_op(kernel):
    reply = kernel.run("%%optime\nwith torch.autograd.profiler.record_function('load'):\n    time.sleep(0.001)")
    assert not any(text.startswith("%%optime:") for text in reply.texts("display"))
    assert "load" in kernel.value("set(_optime.ops['op'])")


PROFILED = "with torch.profiler.profile():\n    get_ipython().run_cell({!r})"


@pytest.mark.parametrize("options", ["", "-w 1", "-r 2"])
def test_a_profiler_that_runs_already_is_one_sentence(kernel, options):
    kernel.run("ran = False\n_optime = None")
    reply = kernel.run(PROFILED.format(f"%%optime {options}\nran = True"))
    (line,) = [line for line in "".join(reply.texts("stderr")).splitlines() if not line.startswith("USDT:") and line]
    assert line.startswith("UsageError: %%optime: A profiler is running in this thread already")
    assert (reply.texts("display"), kernel.value("ran, _optime is None")) == ([], (False, True))
    assert kernel.run("%%optime -q\nx + 1").status == "ok"


@pytest.mark.parametrize(
    "cell", ["%%optime --help\nran = 1", "%%optime -r 2 -h\nran = 1", "%%optime -h\n%%time\nran = 1"]
)
def test_help_is_shown_and_the_cell_not_run(kernel, cell):
    kernel.run("ran = 0")
    reply = kernel.run(cell)
    assert [kind for kind, _ in reply.outputs] == ["display"]
    assert "usage: %%optime" in reply.outputs[0][1]
    assert kernel.value("ran") == 0
