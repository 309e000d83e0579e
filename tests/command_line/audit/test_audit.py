"""`audit`: what is said of a script's steps, and what the script notices of it."""

import atexit
import re
import sys

import pytest
import torch

from nbkit.command_line.audit import read_options
from nbkit.command_line.audit_session import WatchedSteps
from nbkit.trace.trace import Trace

HEAD = """\
import sys
import torch
import torch.nn.functional as F
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.1), torch.nn.GELU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
batches = [torch.randn(6, 4) for _ in range(14)]
def train(x):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    return loss.item()
"""
FUNCTION = HEAD + "for x in batches:\n    print(f'{train(x):.6f}')\n"
# The last step prints what the weights are in the end, as an exit handler sees them.
LOOP = HEAD + "for number, x in enumerate(batches):\n    if number == 1: continue\n    value = train(x)\n"
IN_MAIN = (
    HEAD
    + """
def main(count, *, scale):
    total = 0.0
    for number in range(count):
        x = batches[number] * scale
        total += train(x)
    return total
main(5, scale=1.0)
"""
)
TRAINER = """\
import torch
class Trainer:
    rate = 0.1
    def __init__(self):
        torch.manual_seed(0)
        self.weights, self.number = torch.zeros(3, requires_grad=True), 0
    def step(self, *data, scale=1.0, **more):
        self.number += 1
        loss = ((self.weights - data[0] * scale) ** 2).sum() * more["factor"]
        loss.backward()
        with torch.no_grad():
            self.weights -= self.rate * self.weights.grad
            if self.number > 2: self.weights.grad = None
trainer = Trainer()
for number in range(4):
    trainer.step(torch.ones(3) * number, scale=2.0, factor=3)
"""


@pytest.fixture
def audit(nbkit, folder, capsys):
    """`audit(source, *words)`: exit status, stdout and stderr of auditing a script of that source."""

    def run(source, *words):
        (folder / "script.py").write_text(source)
        status = nbkit("audit", "script.py", *words)
        out, err = capsys.readouterr()
        return status, out, err

    return run


def brief_of(out):
    """The brief, which stands below what the script printed."""
    return out[out.index("opaudit script.py") :]


def test_a_right_script_prints_the_same_and_has_no_findings(audit, folder, nbkit, capsys):
    status, out, err = audit(FUNCTION, "--step", "train")
    exec(compile(FUNCTION, "script.py", "exec"), {})
    bare = capsys.readouterr().out
    assert (status, out[: len(bare)], err) == (0, bare, "")
    assert re.match(r"opaudit script\.py train: 14 steps, loss [\d.]+ at first, [\d.]+ at last, ", brief_of(out))
    assert "Nothing wrong found." in out
    assert "Next: nbkit.opdiff (kernels)." in out


def test_only_steps_that_stand_out_are_pinned(monkeypatch):
    monkeypatch.setattr("nbkit.capture.watch.keeper.holders", list)
    watched = WatchedSteps(1 << 20, None)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for number in range(12):
        watched.begin(number, sys._getframe())
        optimizer.zero_grad()
        (model(torch.ones(3, 2)).square().mean() * (float("nan") if number == 9 else 1)).backward()
        optimizer.step()
        watched.end(None, is_last=False)
    watched.finish()
    assert watched.rows.anomalous == [9]
    assert list(watched.keeper.pinned) == [9]


def test_the_sample_that_spoils_a_step_is_named(audit, folder):
    source = FUNCTION.replace("def train", "batches[9][2] *= 1000\ndef train")
    status, out, _ = audit(source, "--step", "train", "-o", "saved", "--fail-on-findings")
    assert status == 1
    assert re.search(r"1\. warning, unusual_batch: .*\n.*in step 9, .*\n.*follows? from it: the loss jumps to", out)
    assert re.search(
        r"Sample 2 of the batch of step 9 \(shape \[6, 4\]\) holds values up to .* where step 8 has at", out
    )
    assert "script.py:11: `loss = F.mse_loss(model(x), x.sum(1, keepdim=True))`" in out
    assert sorted(path.name for path in (folder / "saved").iterdir()) == ["audit", "step=13", "step=9", "time"]
    trace = Trace.load(folder / "saved" / "audit")
    assert trace.steps["step"].tolist() == list(range(14))
    assert trace.steps["anomaly"].dropna().to_dict() == {9: "loss_spike"}
    assert "gradient_norm" in {name.partition("/")[0] for name in trace.frames["metrics"]["name"]}
    assert trace.meta["recordings"][0] == {"name": "audit", "verb": "opaudit", "steps": [0, 1, 2]}
    found = trace.findings[trace.findings["severity"] != "hint"]  # hints are of time, on a busy machine
    assert found["rule"].tolist() == ["loss_spike", "unusual_batch"]
    assert found["step"].tolist() == [9, 9]
    assert len(Trace.load(folder / "saved" / "step=9").ops)


def test_an_op_that_makes_nan_late_is_named_with_step_and_line(audit):
    source = FUNCTION.replace(
        "    loss.backward()", "    loss = loss + (x[0, 0] - late).sqrt() * 0\n    loss.backward()"
    )
    source = source.replace("def train", "late = -9.0\ndef train").replace(
        "for x in", "for late, x in zip([-9.0] * 7 + [9.0] * 7,"
    )
    source = source.replace("batches:\n", "batches):\n")
    status, out, _ = audit(source, "--step", "train")
    assert status == 0
    assert "follows from it: the loss is NaN from step 7 on, after 7 steps in which it is finite" in out
    line = "loss = loss + (x[0, 0] - late).sqrt() * 0"
    assert re.search(rf"error, nan: aten\.sqrt.*\n +in step 7, .*script\.py:12: `{re.escape(line)}`", out)


@pytest.mark.parametrize(("source", "line"), [(LOOP, 14), (IN_MAIN, 18)], ids=["of the module", "in a function"])
def test_passes_through_a_loop_are_steps(audit, source, line):
    source = source.replace("    optimizer.zero_grad()\n", "")
    status, out, err = audit(source, "--step", f":{line}")
    assert (status, err) == (0, "")
    assert "error, accumulated_gradient" in out and "in step " in out
    assert "could not be run again" not in out


def test_a_method_is_run_again_with_its_object_and_all_kinds_of_arguments(audit, folder):
    status, _, err = audit(TRAINER, "--step", "Trainer.step", "-o", "saved")
    assert (status, err.splitlines()[-1]) == (0, f"nbkit: saved 2 traces to {folder / 'saved'}")
    trace = Trace.load(folder / "saved" / "audit")
    assert trace.steps["loss"].tolist() == pytest.approx([0.0, 36.0, 70.56, 33.1776])
    assert not [note for note in trace.meta["notes"] if note.startswith("Step")]
    assert len(trace.ops) > 10


def test_the_script_ends_with_the_state_that_it_has_left(audit, monkeypatch):
    handlers = []
    monkeypatch.setattr(atexit, "register", handlers.append)
    source = (
        FUNCTION + "\nimport atexit\natexit.register(lambda: [model[0].weight.sum().item(), torch.rand(1).item()])\n"
    )
    exec(compile(source, "script.py", "exec"), {})
    bare = handlers.pop()()
    audit(source, "--step", "train")
    assert handlers.pop()() == bare


def test_a_script_that_fails_is_told_with_the_step_that_failed(audit, folder):
    source = FUNCTION.replace("    loss.backward()", "    if x is batches[3]: loss = loss @ x\n    loss.backward()")
    (folder / "script.py").write_text(source)
    with pytest.raises(RuntimeError, match="both arguments to matmul"):
        audit(source, "--step", "train", "-o", "saved")
    steps = Trace.load(folder / "saved" / "audit").steps
    assert steps["error"].isna().tolist() == [True, True, True, False]
    assert (steps["error"].iloc[-1], steps["anomaly"].iloc[-1]) == ("RuntimeError", "failed")
    failed = Trace.load(folder / "saved" / "step=3")
    assert (failed.complete, failed.meta["error"]["type"]) == (False, "RuntimeError")


def test_a_step_that_cannot_be_run_again_is_said(audit):
    source = HEAD + "data = iter(batches)\ndef step():\n    return train(next(data))\nfor _ in batches:\n    step()\n"
    status, out, _ = audit(source, "--step", "step")
    assert status == 0
    assert "Step 0 could not be run again: StopIteration; the iterator `data` could not be put back." in out
    assert "14 steps" in out


def test_a_step_that_is_another_one_when_it_is_run_again_is_said(audit):
    source = FUNCTION.replace("def train", "import itertools\nticks = itertools.count()\ndef train")
    source = source.replace("loss.backward()", "loss = loss * (1 + next(ticks))\n    loss.backward()")
    _, out, _ = audit(source, "--step", "train")
    assert re.search(
        r"another run: the iterator `ticks` could not be put back\. "
        r"Step 0 has the loss [\d.]+ when it is run again, and had [\d.]+\.",
        out,
    )


def test_numbers_that_are_drawn_between_steps_are_drawn_again(audit):
    source = HEAD.replace("import torch\n", "import torch, random\nimport numpy as np\n", 1).replace(
        "    loss.backward()", "    loss = loss * (1 + random.random() + np.random.rand())\n    loss.backward()"
    )
    source += "for number in range(9):\n    random.random(), np.random.rand()\n    train(torch.randn(6, 4))\n"
    _, out, _ = audit(source, "--step", "train")
    assert "9 steps" in out and "when it is run again" not in out


def test_the_only_step_of_a_script_draws_other_numbers_when_it_is_run_for_the_second_time(audit, folder):
    _, out, _ = audit(HEAD + "train(batches[0])\n", "--step", "train", "-o", "saved")
    assert "1 step, step 0 (3 times) looked into" in out
    saved = Trace.load(folder / "saved" / "audit")
    assert {*saved.findings["severity"]} <= {"hint"}  # of time, on a busy machine
    assert saved.ops["op"].eq("aten.bernoulli_.float").sum() == 3


def test_what_takes_too_much_memory_is_watched_only(audit):
    status, out, _ = audit(FUNCTION, "--step", "train", "--keep-bytes", "100B")
    assert status == 0
    assert "No step was run again: parameters and optimizer state take more memory than may be kept" in out
    assert "14 steps" in out


def test_the_graph_of_the_step_before_does_not_stay_alive(audit):
    source = HEAD.replace("return loss.item()", "return {'losses': [loss]}")
    source += "import gc, weakref\nalive = []\n"
    source += "for x in batches:\n    out = train(x)\n    alive.append(weakref.ref(out['losses'][0]))\n"
    source += "gc.collect()\nprint(sum(one() is not None for one in alive), 'alive')\n"
    status, out, err = audit(source, "--step", ":16")
    assert (status, err, out.splitlines()[0]) == (0, "", "1 alive")


def test_batches_that_take_too_much_memory_are_let_go_of(audit, monkeypatch):
    monkeypatch.setattr("nbkit.capture.watch.keeper.TIME_SHARE", 0.0)  # no new beginning, whatever the time
    source = (
        HEAD + "for number in range(11):\n    x = torch.randn(300_000, 4) * (100 if number == 9 else 1)\n    train(x)\n"
    )
    status, out, _ = audit(source, "--step", "train", "--keep-bytes", "19MB")
    assert status == 0
    assert "loss_spike: The loss jumps to" in out and "Sample" not in out
    assert "Step 9 stands out and was not looked into: its data takes more memory than --keep-bytes allows." in out


def test_one_of_several_processes_runs_no_step_again(audit, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    status, out, _ = audit(FUNCTION, "--step", "train")
    assert status == 0
    assert "No step was run again: this is one of several processes" in out and "14 steps" in out


def test_an_interrupted_step_is_no_anomaly(audit, folder):
    source = HEAD + "for number, x in enumerate(batches):\n    train(x)\n    if number == 5: raise KeyboardInterrupt\n"
    with pytest.raises(KeyboardInterrupt):
        audit(source, "--step", ":14", "-o", "saved")
    steps = Trace.load(folder / "saved" / "audit").steps
    assert steps["error"].tolist()[-1] == "KeyboardInterrupt" and steps["anomaly"].isna().all()


def test_a_module_is_audited(nbkit, folder, capsys):
    (folder / "script.py").write_text(FUNCTION)
    assert nbkit("audit", "-m", "script", "--step", "train") == 0
    assert "opaudit script train: 14 steps" in capsys.readouterr().out


def test_the_script_gets_its_arguments_and_ends_after_the_steps_asked_for(audit):
    source = HEAD + "print(sys.argv[1:])\nfor x in batches:\n    train(x)\nprint('never')\n"
    status, out, _ = audit(source, "--step", "train", "--steps", "4", "--", "--lr", "3e-4")
    assert status == 0
    assert out.startswith("['--lr', '3e-4']\n") and "\nopaudit script.py train: 4 steps" in out and "never" not in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "give --step FUNCTION, or --step :LINE of a loop, to say what the training step is."),
        (["--step", "trian"], "script.py defines no function 'trian'; did you mean 'train'?"),
        (["--step", "unused"], "--step unused was never met: it was never called; the script also defines train."),
        (["--step", "train", "--keep-bytes", "many"], "'many' is not a size; give such as 500MB or 2GiB."),
        (["--step", "train", "-o", "full"], "is not empty, and it holds no audit to be replaced; give another name."),
        (["--steps", "0", "--step", "train"], "'0' is not a count; give a whole number from 1 up."),
    ],
)
def test_what_cannot_be_used_is_one_sentence(audit, folder, words, sentence):
    (folder / "full").mkdir()
    (folder / "full" / "mine.txt").touch()
    status, _, err = audit(FUNCTION + "def unused(): pass\n", *words)
    assert status == 2
    assert sentence in err and err.count("\n") == 1


def test_an_audit_is_replaced_by_a_later_one(audit, folder):
    for _ in range(2):
        status, _, err = audit(FUNCTION, "--step", "train", "-o", "saved")
        assert (status, err.splitlines()[-1]) == (0, f"nbkit: saved 3 traces to {folder / 'saved'}")


@pytest.mark.parametrize(
    ("text", "size"), [("7", 7), ("500MB", 500_000_000), ("2GiB", 2 << 30), ("1.5kib", 1536), ("3b", 3), ("1Kb", 1000)]
)
def test_sizes(text, size):
    options = read_options(["script.py", "--step", "train", "--keep-bytes", text])
    assert (options.keep_bytes, options.target) == (size, ["script.py"])


def test_no_script_is_one_sentence(nbkit, folder, capsys):
    assert nbkit("audit") == 2
    assert "give a script to run" in capsys.readouterr().err
    assert nbkit("audit", "absent.py", "--step", "step") == 2
    assert "There is no absent.py" in capsys.readouterr().err
    assert "torch" in sys.modules
