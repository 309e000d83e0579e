"""In a real kernel: what `%opgraph` shows and stores, and what a bad line does."""

import pytest

MODEL = """\
import torch
model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
"""


@pytest.fixture(scope="module", autouse=True)
def model(kernel):
    kernel.run("%unload_ext nbkit\n%load_ext nbkit\n" + MODEL)
    kernel.run("%%optrace -q -o step\nmodel(torch.ones(1, 2))")


def shown(kernel, code: str) -> str:
    reply = kernel.run(code)
    assert reply.status == "ok", reply.error
    return reply.outputs[-1][1]


def test_names_are_modules_and_traces(kernel):
    assert "\n\nopgraph Sequential" in shown(kernel, "%opgraph model")
    assert "\n\nopgraph optrace" in shown(kernel, "%opgraph step")
    kernel.run("%opgraph -q model.0 -o first")
    assert shown(kernel, "first.meta['name'], first is _opgraph, len(first.nodes)") == "('Linear', True, 3)"


def test_a_path_may_be_given_and_two_are_compared(kernel, tmp_path):
    kernel.run(f"step.save({str(tmp_path / 'my step')!r})")
    kernel.run(f"%opgraph -q model --against '{tmp_path / 'my step'}' -o both")
    found = "both.correspondence.query('level == \"parameter\"')['action'].tolist()"
    assert shown(kernel, found) == "['match', 'match']"


def test_quiet_shows_nothing_and_help_runs_nothing(kernel):
    assert kernel.run("%opgraph -q model").outputs == []
    assert "usage: %opgraph" in shown(kernel, "%opgraph --help")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "SOURCE is missing."),
        ("modle", "there is neither a name 'modle' in this notebook nor such a file; did you mean 'model'?"),
        ("no/such.log", "there is neither a name 'no/such.log' in this notebook nor such a file; "),
        ("torch", "There is no graph of the type module; give a torch.nn.Module"),
        ("model --graph tree", "There is no graph 'tree' in 'Sequential'; did you mean 'module tree'?"),
    ],
)
def test_a_bad_line_is_one_red_line(kernel, line, message):
    reply = kernel.run(f"%opgraph {line}")
    ((kind, text),) = reply.outputs
    assert (reply.status, reply.error[0], kind) == ("error", "UsageError", "stderr")
    assert text.startswith("UsageError: %opgraph: ") and message in text
    assert text.count("\n") == 1
