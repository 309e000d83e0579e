"""`audit`: what is said of scripts that train nothing, of those that end in NaN, and of a part of a step."""

import pytest

HEAD = """\
import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = torch.randn(24, 8, 4)
def loss_of(x):
    return model(x).square().mean()
"""


@pytest.fixture
def brief(nbkit, folder, capsys):
    """`brief(source, where)`: what the audit of a script of that source says."""

    def run(source, where="train"):
        (folder / "script.py").write_text(HEAD + source)
        assert nbkit("audit", "script.py", "--step", where) == 0
        return capsys.readouterr().out

    return run


def function(*lines, more=""):
    body = "".join(f"    {line}\n" for line in lines)
    return f"def train(x):\n{body}for x in batches:\n    train(x)\n{more}"


def test_steps_without_any_gradient_are_an_error(brief):
    lines = ("optimizer.zero_grad()", "loss = torch.tensor(loss_of(x).item(), requires_grad=True)", "loss.backward()")
    text = brief(function(*lines, "optimizer.step()"))
    assert text.startswith("1 error. ")
    assert "SGD steps 3 times and changes nothing: all 2 parameters of Linear get no gradient; the graph is cut" in text
    assert "script.py:10: `loss = torch.tensor(loss_of(x).item(), requires_grad=True)`" in text


def test_gradients_without_any_step_are_a_warning(brief):
    cleared = brief(function("optimizer.zero_grad()", "loss_of(x).backward()"))
    assert cleared.startswith("1 warning. ")
    assert "No optimizer steps: the gradients of 2 of 3 backward passes are cleared" in cleared
    summed = brief(function("loss_of(x).backward()"))
    assert summed.startswith("1 warning. ")
    assert "no_step: No optimizer steps in any of 24 steps, and its parameters stay as they were." in summed


def test_an_optimizer_that_steps_outside_of_the_function_is_seen(brief):
    text = brief(function("optimizer.zero_grad()", "loss_of(x).backward()", more="    optimizer.step()\n"))
    assert text.startswith("Nothing wrong found. ")
    assert "no optimizer stepped in steps 0, 1, 2, but 24 times between steps." in text


def test_an_update_by_hand_is_one(brief):
    text = brief(function("loss_of(x).backward()", more="    for p in model.parameters(): p.data -= 0.1 * p.grad\n"))
    assert text.startswith("Nothing wrong found. ")


def test_passes_over_parts_of_a_batch_are_told_from_steps(brief):
    loop = """\
for number, x in enumerate(batches):
    loss_of(x).backward()
    if number % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
"""
    text = brief(loop, f":{HEAD.count(chr(10)) + 1}")
    assert text.startswith("Nothing wrong found. ")
    assert "no optimizer stepped in steps 0, 1, 2, but 6 times in others." in text


def test_gradients_cleared_between_parts_of_a_batch_are_a_hint(brief):
    loop = """\
for number, x in enumerate(batches):
    optimizer.zero_grad()
    loss_of(x).backward()
    if number % 4 == 3:
        optimizer.step()
"""
    text = brief(loop, f":{HEAD.count(chr(10)) + 1}")
    assert "hint, discarded_gradient: The gradients of 2 of 3 backward passes are cleared" in text


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("batches[9] = float('nan')", " in step 8, NaN at last (from step 9 on), steps "),
        ("batches[0] = float('nan')", "24 steps, loss NaN at last (from step 0 on), steps "),
        ("batches[1] = float('nan')", " at first, NaN at last (from step 1 on), steps "),
        ("batches[23] = 1e30", " in step 22, Inf at last (the last step), steps "),
    ],
)
def test_a_loss_that_ends_as_nan_is_said(brief, bad, said):
    step = function("optimizer.zero_grad()", "loss = loss_of(x)", "loss.backward()", "optimizer.step()")
    assert said in brief(f"{bad}\n{step}")


def test_a_loss_that_is_finite_again_is_the_last_one(brief):
    step = function(
        "optimizer.zero_grad()", "loss = loss_of(x)", "loss.backward()", "loss.isfinite() and optimizer.step()"
    )
    text = brief(f"batches[9] = float('nan')\n{step}")
    assert " at last, steps " in text
    assert "NaN at last" not in text
