"""In a real kernel: `%%opcheck` shows what it found, and `--stop` ends the cell there."""

import pytest


def test_findings_are_shown_and_kept(kernel):
    reply = kernel.run("%%opcheck -o trace --name 'a run'\nprint('mine')\nx / 0")
    assert [kind for kind, _ in reply.outputs] == ["stdout", "display", "value"]
    assert kernel.value("trace is _opcheck, trace.findings['rule'].tolist()") == (True, ["inf"])
    assert "aten.div.Tensor" in kernel.value("trace.summary()")


def test_stop_ends_the_cell_at_the_op(kernel):
    reply = kernel.run("%%opcheck --stop\nbefore = 1\ny = x / 0\nafter = 1")
    assert (reply.status, reply.error[0]) == ("error", "NonFiniteError")
    assert kernel.value("'before' in globals(), 'after' in globals(), _opcheck.complete") == (True, False, False)
    assert "Cell In[" in kernel.value("_opcheck.findings['source'][0]")


@pytest.mark.parametrize(
    ("options", "message"),
    [("--stpo", "unknown option '--stpo'; did you mean '--stop'"), ("--stop now", "'now'")],
)
def test_a_bad_option_fails_the_cell_before_it_runs(kernel, options, message):
    reply = kernel.run(f"%%opcheck {options}\nran = True")
    assert (reply.status, reply.error[0]) == ("error", "UsageError")
    assert message in reply.outputs[0][1]
