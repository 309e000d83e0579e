"""`audit` where its trace has no place any more, and where nothing could be watched."""

import pytest

from nbkit.capture.watch.rerun import Rerun
from nbkit.command_line.audit_session import WatchedSteps
from nbkit.errors import OptionError

SCRIPT = """\
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
def step(x):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
for number in range(2):
    step(torch.ones(3, 2))
print("ran")
"""


@pytest.fixture
def script(folder):
    (folder / "script.py").write_text(SCRIPT)
    return folder / "script.py"


def test_a_place_that_the_script_took_is_said_after_what_was_found(nbkit, script, capsys):
    # The folder is there from the first step on.
    took = "import shutil\nshutil.rmtree('saved')\nopen('saved', 'w').close()\n"
    script.write_text(f"{SCRIPT}{took}")
    assert nbkit("audit", "script.py", "--step", "step", "-o", "saved") == 2
    out, err = capsys.readouterr()
    assert "opaudit script.py step: 2 steps" in out
    assert err.startswith("nbkit: ") and "saved" in err and err.count("\n") == 1


def test_why_no_step_could_be_watched_is_said(nbkit, script, capsys, monkeypatch):
    def refuses(self, number, frame):
        raise OptionError("A profiler is running.")

    monkeypatch.setattr(WatchedSteps, "begin", refuses)
    assert nbkit("audit", "script.py", "--step", "step") == 2
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[0]) == ("ran\n", "nbkit: A profiler is running.")


def test_ctrl_c_while_steps_run_again_keeps_what_is_known(nbkit, folder, capsys, monkeypatch):
    (folder / "train.py").write_text(SCRIPT_OF_MANY)

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(Rerun, "_anomalous", interrupted)
    assert nbkit("audit", "train.py", "--step", "step") == 130
    out, err = capsys.readouterr()
    assert "Incomplete: Interrupted: 3 of 5 steps looked into." in out
    assert "The loss is NaN from step 8 on" in out
    assert "Traceback" not in err


SCRIPT_OF_MANY = """
import torch
net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.01)

def step(scale):
    optimizer.zero_grad()
    loss = net(torch.ones(4, 2)).pow(2).mean() * scale
    loss.backward()
    optimizer.step()

for number in range(20):
    step(float("nan") if number >= 8 else 1.0)
"""
