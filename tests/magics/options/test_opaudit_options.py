"""In a real kernel: `%%opaudit` shows what it found, and keeps it."""

STEP = """\
import torch
model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)"""


def test_findings_are_shown_and_kept(kernel):
    kernel.run(STEP)
    reply = kernel.run("%%opaudit -o trace\nmodel[1](model[0](x).detach()).sum().backward()\noptimizer.step()")
    assert [kind for kind, _ in reply.outputs] == ["display"]
    assert kernel.value("trace is _opaudit, trace.findings['rule'].tolist()") == (True, ["no_gradient"])
    text = kernel.value("trace.summary()")
    assert "0 (2 tensors) get no gradient; the graph is cut by aten.detach at Cell In[" in " ".join(text.split())


def test_models_and_optimizers_are_given_in_code_only(kernel):
    reply = kernel.run("%%opaudit --model model\nran = True")
    assert (reply.status, reply.error[0]) == ("error", "UsageError")
    assert "unknown option '--model'" in reply.outputs[0][1]
