"""In a real kernel: `%%opdoctor` runs its cell as often as asked, and shows what is wrong with it."""

import pytest

STEP = """\
import torch
model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
x, runs = torch.ones(2, 3), []"""
CELL = "runs.append(1)\nmodel[1](model[0](x).{}).sum().backward()\noptimizer.step()\noptimizer.zero_grad()\nlen(runs)"


@pytest.mark.parametrize(("options", "runs", "timed"), [("", 1, 0), ("-r 1", 1, 0), ("-w 1 -r 3", 4, 2)])
def test_the_cell_runs_as_often_as_asked(kernel, options, runs, timed):
    kernel.run(STEP)
    reply = kernel.run(f"%%opdoctor -q -o trace {options}\n{CELL.format('tanh()')}")
    assert reply.texts("value") == [str(runs)]
    assert kernel.value("trace is _opdoctor, trace.meta['step']['runs'], len(runs)") == (True, timed, runs)


def test_what_is_wrong_is_shown_and_kept(kernel):
    kernel.run(STEP)
    reply = kernel.run(f"%%opdoctor\n{CELL.format('detach()')}")
    assert [kind for kind, _ in reply.outputs][-1] == "value"
    assert kernel.value("_opdoctor.findings['rule'].tolist()") == ["no_gradient"]
    text = " ".join(kernel.value("_opdoctor.brief()").split())
    assert text.startswith("1 warning.")
    assert "0 (2 tensors) get no gradient; the graph is cut by aten.detach at Cell In[" in text


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("-r 0", "'0' is not a count; give a whole number from 1 up."),
        ("-w -1", "'-1' is not a count; give a whole number from 0 up."),
        ("--repeat 3", "unknown option '--repeat'; did you mean '--repeats'"),
        ("--device gpu", "device='gpu' is not known"),
        ("--model model", "unknown option '--model'"),
    ],
)
def test_an_option_that_cannot_be_used_is_refused_in_a_sentence(kernel, options, sentence):
    reply = kernel.run(f"%%opdoctor {options}\nran = True")
    assert (reply.status, reply.error[0]) == ("error", "UsageError")
    assert sentence in reply.outputs[0][1]
