"""The rows of a long run: none is lost, memory and files grow little, and a run that is killed leaves a trace."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import nbkit
from nbkit.capture.watch.rows import BLOCK, FIRST, StepRows
from nbkit.errors import TraceError
from nbkit.trace.live import LiveTrace

LOSSES = [1.0 + number % 7 for number in range(2 * BLOCK + 10)]


def row(number, loss, **columns):
    known = {"step": number, "loss": loss, "optimizer_steps": 1, "skipped_steps": 0, "held_bytes": 1 << 20}
    return {**known, "anomaly": None, "error": None, "wall_us": 1e3, **columns}


def filled(live):
    rows = StepRows(live=live)
    for number, loss in enumerate(LOSSES):
        rows.append(row(number, loss, anomaly="loss_spike" if number == BLOCK + 3 else None))
    return rows


@pytest.mark.parametrize("is_live", [False, True])
def test_all_rows_come_back_and_few_are_held(tmp_path, is_live):
    rows = filled(LiveTrace(tmp_path, ("steps",), {}) if is_live else None)
    assert (len(rows), rows.anomalous, rows.has_steps) == (len(LOSSES), [BLOCK + 3], True)
    assert len(rows.blocks.open) < BLOCK and len(rows.at_hand) == FIRST + 1
    assert [rows[number]["step"] for number in (0, BLOCK + 3, len(LOSSES) - 1)] == [0, BLOCK + 3, len(LOSSES) - 1]
    assert len(rows.blocks.closed) == (0 if is_live else 2)
    frame = rows.blocks.frame()
    assert frame["loss"].tolist() == LOSSES and frame["anomaly"].dropna().to_dict() == {BLOCK + 3: "loss_spike"}


def test_the_file_grows_by_a_tenth_of_a_kilobyte_a_step_at_most(tmp_path):
    live = LiveTrace(tmp_path, ("steps",), {})
    filled(live)
    assert sum(file.stat().st_size for file in live.path.rglob("*.parquet") if file.is_file()) < 100 * len(LOSSES)


def test_a_disk_that_takes_no_more_costs_no_row(tmp_path, monkeypatch):
    def refuses(self, name, frame):
        raise TraceError("The disk is full.")

    rows = StepRows(live=LiveTrace(tmp_path, ("steps",), {}))
    for number, loss in enumerate(LOSSES):
        if number == BLOCK + 1:
            monkeypatch.setattr(LiveTrace, "write", refuses)
        rows.append(row(number, loss))
    assert rows.blocks.frame()["loss"].tolist() == LOSSES
    assert rows.blocks.problem == "The disk is full."


def test_the_folder_of_a_run_before_stays(tmp_path):
    names = [LiveTrace(tmp_path, ("steps",), {}).path.name for _ in range(2)]
    assert names == ["running", "running-2"]


KILLED = """
import os, signal
import torch
import nbkit.capture.watch.rows as rows
rows.EVERY_S = 0.0  # a part for each step
weight = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([weight], 0.001)
def train():
    optimizer.zero_grad()
    weight.square().sum().backward()
    optimizer.step()
for number in range(20):
    train()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_script_that_is_killed_leaves_its_steps(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(KILLED)
    words = [sys.executable, "-m", "nbkit", "audit", str(script), "--step", "train", "-o", str(tmp_path / "out")]
    environment = {**os.environ, "PYTHONPATH": str(Path(nbkit.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(words, env=environment, capture_output=True, check=False, timeout=120)
    assert ended.returncode == -signal.SIGKILL
    trace = nbkit.load(tmp_path / "out" / "running")
    assert trace.steps["step"].tolist() == list(range(20))
    assert trace.meta["complete"] is False and trace.steps["loss"].iloc[0] == 2.0


def test_rows_that_somebody_removed_are_counted_as_lost_and_the_others_stay(tmp_path):
    live = LiveTrace(tmp_path, ("steps",), {})
    rows = filled(live)
    written = live.parts["steps"]
    shutil.rmtree(live.path)
    rows.append(rows.last)
    known = rows.blocks.frame()
    lost = len(LOSSES) + 1 - len(known)
    assert written and lost > 0 and rows.blocks.problem.startswith(f"{lost:,} rows of steps are lost: There is no ")
