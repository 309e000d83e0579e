"""In processes of their own: what a script shows and how it ends is that of the bare run."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from nbkit.trace.trace import Trace
from tests.command_line.scripts import INTERRUPTED, TRAIN
from tests.processes import PYTHON

ROOT = Path(__file__).parents[2]


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [*PYTHON, *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("scripts")
    (folder / "train.py").write_text(TRAIN)
    (folder / "interrupted.py").write_text(INTERRUPTED)
    return folder


@pytest.mark.parametrize("script", [["train.py", "--fail"], ["-m", "train", "--fail"]], ids=["file", "module"])
def test_a_script_that_fails_fails_as_without_us(folder, script):
    bare = run(folder, *script)
    recorded = run(folder, "-m", "nbkit", "run", "-o", "failed", "--step", "Trainer.step", *script)
    assert (bare.returncode, bare.stdout.count("\n")) == (1, 3)
    assert (recorded.returncode, recorded.stdout) == (bare.returncode, bare.stdout)
    summary, _, traceback = recorded.stderr.partition("Traceback (most")
    assert f"Traceback (most{traceback}" == bare.stderr
    assert "\n\noptrace train" in summary and "slowest ops" in summary
    assert Trace.load(folder / "failed").complete


def test_an_interrupt_leaves_the_trace_so_far(folder):
    recorded = run(folder, "-m", "nbkit", "run", "-q", "-o", "interrupted", "interrupted.py")
    assert (recorded.returncode, recorded.stdout) == (-signal.SIGINT, "bye\n")
    assert recorded.stderr.splitlines()[-1] == "KeyboardInterrupt"
    trace = Trace.load(folder / "interrupted")
    assert (trace.complete, trace.meta["error"]["type"]) == (False, "KeyboardInterrupt")
    assert trace.ops["op"].tolist().count("aten.add.Tensor") == 2


def test_a_status_and_a_message_of_sys_exit_are_the_scripts(folder):
    (folder / "leaves.py").write_text("import sys, torch\ntorch.ones(2)\nsys.exit('no data')\n")
    recorded = run(folder, "-m", "nbkit", "run", "-q", "-o", "left", "leaves.py")
    assert (recorded.returncode, recorded.stdout, recorded.stderr) == (1, "", "no data\n")
    assert Trace.load(folder / "left").meta["error"]["type"] == "SystemExit"


def test_results_go_to_a_reader_that_leaves_early(folder):
    code = "import sys\nfrom nbkit.command_line.main import main\nsys.stdin.read()\nmain(['--help'])"
    command = [*PYTHON, "-c", code]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, text=True, **streams) as process:
        process.stdout.close()
        process.stdin.close()
        assert (process.stderr.read(), process.wait(60)) == ("", 0)
