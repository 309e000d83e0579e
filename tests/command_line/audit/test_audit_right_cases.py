"""Some of the right kinds of training, audited as scripts of 25 steps: nothing is wrong, each step runs again."""

import re

import pytest

from nbkit.findings.finding import wrong
from nbkit.trace.trace import Trace
from tests.capture.audit.right import CASES

SCRIPT = """\
import torch
from tests.capture.audit.right import CASES
torch.manual_seed(0)
one = CASES["{name}"]()
def step(number):
    return one(number)
for number in range(25):
    step(number)
"""


# All of them are audited within a process, in tests/capture/audit; a script needs a second more for each.
@pytest.mark.parametrize("name", [*CASES][::9])
def test_nothing_is_called_wrong(nbkit, folder, capsys, name):
    (folder / "script.py").write_text(SCRIPT.format(name=name))
    assert nbkit("audit", "script.py", "--step", "step", "-o", "saved", "--fail-on-findings") == 0, capsys.readouterr()
    trace = Trace.load(folder / "saved" / "audit")
    assert wrong(trace.findings)["message"].tolist() == []
    assert trace.meta["limits"] == []
    assert trace.steps["anomaly"].isna().all() and len(trace.steps) == 25
    assert re.search(r"25 steps.* looked into", capsys.readouterr().out)
