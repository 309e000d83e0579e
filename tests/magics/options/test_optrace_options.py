"""In a real kernel: what the options of `%%optrace` do, and what a bad one does."""

import pytest


def test_the_trace_is_shown_after_the_cells_output_and_before_its_value(kernel):
    reply = kernel.run("%%optrace -o trace\nprint('mine')\nx + 1")
    assert [kind for kind, _ in reply.outputs] == ["stdout", "display", "value"]
    assert kernel.value("trace is _optrace, type(trace).__name__, trace.complete") == (True, "Trace", True)


def test_quiet_shows_nothing_and_keeps_the_trace(kernel):
    assert kernel.run("%%optrace -q -o quiet_one\ny = x + 1").outputs == []
    assert kernel.value("len(quiet_one.ops) > 0") is True


def test_only_the_named_trace_is_a_new_name(kernel):
    before = kernel.value("sorted(globals()), get_ipython().run_line_magic('who_ls', '')")
    kernel.run("_optrace = None\n%reset_selective -f ^nothing$")
    kernel.run("%%optrace -o fresh\nx + 1")
    after = kernel.value("sorted(globals()), get_ipython().run_line_magic('who_ls', '')")
    assert set(after[1]) - set(before[1]) == {"fresh"}
    assert {name for name in set(after[0]) - set(before[0]) if not name.startswith("_")} == {"fresh"}


def test_filters_name_and_values_reach_the_recorder(kernel):
    kernel.run("%%optrace -q -o few --ops mul --name 'a run' --values stats\ny = x + 1\ny * 2")
    assert kernel.value("set(few.ops[few.ops.level == 'aten']['op'])") == {"aten.mul.Tensor"}
    assert kernel.value("few.meta['name'], few.meta['filtered_ops'] > 0") == ("a run", True)


def test_save_writes_the_folder_that_load_reads(kernel, tmp_path):
    reply = kernel.run(f"%%optrace -q -o saved --save {tmp_path}/deep/run\nx + 1")
    assert ("display", f"made the folder {tmp_path}/deep") in reply.outputs
    kernel.run("import nbkit")
    assert kernel.value(f"nbkit.load({str(tmp_path / 'deep/run')!r}).ops.equals(saved.ops)") is True


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--outptu t", "unknown option '--outptu'; did you mean '--output'"),
        ("--ops re:(", "'re:(' is not a regular expression"),
        ("--modules re:[", "'re:[' is not a regular expression"),
        ("--values mean", "'mean'"),
        ("-o 1st", "'1st' is not a Python name"),
        ("--save /dev/null", "/dev/null exists and is not a trace"),
        ("--save /dev/null/trace", "Cannot save a trace to /dev/null/trace: /dev/null is no folder;"),
    ],
)
@pytest.mark.parametrize("end", ["", "%%time\n"], ids=["wrapped", "direct"])
def test_a_bad_option_fails_the_cell_before_it_runs(kernel, options, message, end):
    reply = kernel.run(f"%%optrace {options}\n{end}ran = True")
    ((kind, text),) = reply.outputs
    assert (reply.status, reply.error[0], kind) == ("error", "UsageError", "stderr")
    assert message in text
    assert text.startswith("UsageError: %%optrace: ")
    assert text.count("\n") == 1
    assert kernel.value("'ran' in globals()") is False


def test_a_save_that_fails_after_the_cell_fails_it_and_keeps_the_trace(kernel, tmp_path):
    body = f"x + 1\nopen({str(tmp_path / 'run')!r}, 'w').close()"
    reply = kernel.run(f"%%optrace -o kept --save {tmp_path}/run\n{body}")
    assert (reply.status, reply.error[0]) == ("error", "UsageError")
    assert reply.outputs[-1][1].endswith("nothing of yours is lost. The trace itself is kept as kept.\n")
    assert kernel.value("len(kept.ops) > 0") is True


def test_a_save_that_fails_after_an_error_leaves_the_error(kernel, tmp_path):
    body = f"x + 1\nopen({str(tmp_path / 'run')!r}, 'w').close()\n1 / 0"
    reply = kernel.run(f"%%optrace --save {tmp_path}/run\n{body}")
    assert reply.error[0] == "ZeroDivisionError"
    assert len(reply.texts("error")) == 1
    assert "The trace itself is kept as _optrace." in reply.texts("stderr")[0]


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ("%%optrace", "The cell is empty, so nothing was recorded."),
        ("%%optrace\n\n# later\n", "The cell is empty, so nothing was recorded."),
        ("%%optrace\na = 1", "No op ran in the thread of this cell, so the trace is empty."),
        ("%%optrace\n1 / 0", "No op ran before the cell ended with ZeroDivisionError, so the trace is empty and"),
        ("%%optrace --ops nothing_fits\nx + 1", "The filters left out all"),
    ],
)
def test_nothing_recorded_is_one_sentence(kernel, cell, sentence):
    (text,) = kernel.run(cell).texts("display")
    assert text.startswith(f"%%optrace: {sentence}")
    assert text.count("\n") == 0
    assert kernel.value("len(_optrace.ops)") == 0


@pytest.mark.parametrize("cell", ["%%optrace --help\nran = True", "%%optrace -h", "%%optrace -h\n%%time\nran = True"])
def test_help_is_shown_and_the_cell_not_run(kernel, cell):
    reply = kernel.run(cell)
    assert [kind for kind, _ in reply.outputs] == ["display"]
    assert "usage: %%optrace" in reply.outputs[0][1]
    assert kernel.value("'ran' in globals()") is False
