"""`doctor`: what is said of a script's steps, or of a script as a whole."""

import re

import pytest

from nbkit.trace.trace import Trace

STEPS = """\
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
def train(x):
    optimizer.zero_grad()
    loss = (model(x).squeeze(-1) - x.sum(1)).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()
for number in range(5):
    print(f"{train(torch.randn(6, 4)):.4f}")
"""
BROADCAST = STEPS.replace("model(x).squeeze(-1)", "model(x)")
WITHOUT_OPS = "print('nothing')\n"


@pytest.fixture
def doctor(nbkit, folder, capsys):
    """`doctor(source, *words)`: exit status, stdout and stderr of `doctor` on a script of that source."""

    def run(source, *words):
        (folder / "script.py").write_text(source)
        status = nbkit("doctor", "script.py", *words)
        return status, *capsys.readouterr()

    return run


def test_a_right_script_is_said_to_be_right_with_time_and_peak(doctor):
    status, out, err = doctor(STEPS, "--step", "train", "--fail-on-findings")
    assert (status, err) == (0, "")
    assert len(re.findall(r"^\d\.\d{4}$", out, re.MULTILINE)) == 5  # what the script prints
    said = " ".join(out.split())
    assert "Nothing wrong found." in said or "No errors and no warnings." in said
    assert re.search(r"per step \(median of 3 runs, IQR .*: forward \d+ %, backward \d+ %, optimizer \d+ %", said)
    assert "products and convolutions compute " in said
    assert "Peak memory " in said and "opdoctor script.py train: 5 steps" in said


@pytest.mark.parametrize("step", [("--step", "train"), ()])
def test_the_cause_comes_first_and_is_saved_and_reported(doctor, folder, step):
    status, out, err = doctor(BROADCAST, *step, "-o", "saved", "--report", "report.html", "--fail-on-findings")
    assert status == 1
    assert re.search(r"^1\. warning, unintended_broadcast: ", out, re.MULTILINE)
    assert "script.py:7: `loss = (model(x) - x.sum(1)).square().mean()`" in out
    saved = Trace.load(folder / "saved" / "audit" if step else folder / "saved")
    assert saved.meta["verb"] == "opdoctor"
    assert "unintended_broadcast" in set(saved.findings["rule"])
    assert saved.meta["step"]["peak_bytes"] > 0
    page = (folder / "report.html").read_text()
    assert "unintended_broadcast" in page and "wrote " in err


def test_a_step_that_starts_a_profiler_itself_has_no_time(doctor):
    own = "    with torch.profiler.profile():\n        return train(x)\n"
    source = STEPS.replace("for number", f"def profiled(x):\n{own}for number").replace("{train(", "{profiled(")
    status, out, _ = doctor(source, "--step", "profiled")
    assert status == 0
    assert "opdoctor script.py profiled: 5 steps" in (said := " ".join(out.split())) and " per step (" not in said
    assert said.index("Time and memory were not judged: another profiler") < said.index("opdoctor script.py")
    assert "Nothing wrong" not in said


def test_a_script_that_fails_ends_as_it_would_and_is_told(doctor, folder):
    with pytest.raises(ZeroDivisionError):
        doctor(STEPS.replace("for number", "1 / 0\nfor number"))


def test_the_whole_of_a_script_is_looked_at_as_it_runs(doctor):
    status, out, _ = doctor(STEPS)
    assert status == 0
    said = " ".join(out.split())
    assert re.search(r"At most \S+ \S+ for the whole script: ", said) and "per step" not in said
    assert "4 parameters of Sequential: all got a gradient and moved." in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "give a script to run; python -m nbkit doctor --help shows how."),
        (("nosuch.py",), "There is no nosuch.py; give a Python script, or -m and the name of a module."),
        (("train.py", "--steps", "3"), "--steps counts the steps that --step names; give --step FUNCTION"),
        (("train.py", "--step", "1x"), "--step '1x' names no code"),
        (("train.py", "--step", "train", "--steps", "0"), "'0' is not a count; give a whole number from 1 up."),
        (("train.py", "--reprot", "x.html"), "unknown option '--reprot'; did you mean '--report'"),
        (("train.py", "--lr", "3"), "What the script is given stands behind --."),
    ],
)
def test_bad_input_is_one_sentence(nbkit, capsys, words, sentence):
    assert nbkit("doctor", *words) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "python -m nbkit doctor: " in err and sentence in err


def test_a_script_without_an_op_has_nothing_to_report(doctor):
    status, _, err = doctor(WITHOUT_OPS, "--report", "report.html")
    assert status == 2
    assert "No op was recorded, so there is nothing to report" in err
