"""`audit` where its trace has no place any more, and where nothing could be watched."""

import pytest

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
    script.write_text(f"{SCRIPT}open('saved', 'w').close()\n")
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
