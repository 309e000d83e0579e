"""The commands of docs/guides/terminal.md, in a shell, one after the other, on a script of a reader."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import torch

import nbkit
from nbkit.trace.trace import Trace
from tests.docs.own_models import script
from tests.docs.readme import INTRO, PATH, ROOT, TERMINAL, commands
from tests.processes import FOLDER


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reader")


def shell(command: str, folder: Path, status: int = 0) -> str:
    """What the command says on its output; its `python` is forked."""
    path = f"{os.environ[FOLDER]}/bin{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stderr[-2000:]
    return done.stdout


def the(start: str) -> str:
    """The one command that begins so."""
    (found,) = [command for command in commands(TERMINAL) if command.startswith(f"python -m nbkit {start}")]
    return found


def test_each_command_of_the_section_is_run_below():
    words = [shlex.split(command) for command in commands(TERMINAL)]
    assert [word[:3] for word in words] == [["python", "-m", "nbkit"]] * 8
    assert [word[3] for word in words] == ["run", "run", "run", "audit", "diff", "load", "report", "info"]


def test_a_function_of_the_script_is_recorded(folder):
    (folder / "train.py").write_text(script(times=1))
    assert shell(the("run -o trace --step train_step"), folder).endswith("done\n")
    trace = Trace.load(folder / "trace")
    assert trace.ops["source"].dropna().str.match(r"train\.py:(9|1[0-2])$").all()
    assert {"forward", "backward"} <= set(trace.ops["phase"])


def test_a_pass_through_a_loop_is_recorded(folder):
    shell(the("run -o trace --step :41"), folder)
    trace = Trace.load(folder / "trace")
    assert set(trace.ops["source"].dropna()) == {"train.py:42"} and trace.meta["name"] == "train.py :41"


def test_a_slower_step_is_told_from_noise(folder):
    before = the("run -o before")
    shell(before, folder)
    (folder / "train.py").write_text(script(times=8))
    shell(before.replace("-o before", "-o after"), folder)
    verdicts = shell(the("diff"), folder, status=1).partition("times that differ")[2].splitlines()
    assert any(line.split()[:3] == ["2,", "backward", "slower"] for line in verdicts)


def test_the_steps_of_the_script_are_audited(folder):
    said = shell(the("audit"), folder)
    assert "opaudit train.py train_step: " in said and "Nothing wrong found." in said


def test_the_slowest_ops_come_first(folder):
    header, first, *_ = shell(the("load"), folder).splitlines()
    assert header.split()[0] == "op_id"
    rows = Trace.load(folder / "trace").ops
    slowest = rows.loc[rows["self_time_us"].idxmax()]
    assert first.split()[0] == str(slowest["op_id"]) and slowest["op"] in first


def test_all_of_it_is_in_one_file(folder):
    said = shell(the("report"), folder)
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert "report.html: 3 traces, " in said and text.count('class="nbkit-trace"') == 3


def test_versions_are_told(folder):
    said = dict(line.split(maxsplit=1) for line in shell(the("info"), folder).splitlines())
    assert (said["nbkit"], said["torch"]) == (nbkit.__version__, torch.__version__)


def test_ci_runs_what_readme_says_to_install():
    made = set(re.findall(r"^(?:nice -n [0-9]+ )?(make [a-z-]+)", (ROOT / ".ci/run").read_text(), re.MULTILINE))
    assert commands(INTRO) == ["make demo", "make test"]
    assert {"make demo", "make test-all", "make wheel-check"} <= made
    assert commands(PATH) == ["pip install ."]  # tests.wheel runs them
