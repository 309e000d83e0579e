"""Every notebook runs from top to bottom on a CPU, is short, and is committed without outputs."""

import json
import time
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.notebook_files import faults

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MOST_SECONDS = 60


def test_there_are_notebooks():
    assert {"01_trace_a_step", "02_where_time_goes", "03_device_vs_cpu"} <= {path.stem for path in NOTEBOOKS}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_committed_clean_and_short(path):
    assert faults(path) == []


def test_what_a_notebook_must_not_hold_is_named(tmp_path):
    cell = {"cell_type": "code", "source": "1", "execution_count": 1, "outputs": [{"output_type": "stream"}]}
    path = tmp_path / "bad.ipynb"
    path.write_text(json.dumps({"cells": [cell] * 16, "metadata": {"widgets": {}}}))
    found = faults(path)
    assert "bad.ipynb: code cell 0 holds outputs" in found
    assert "bad.ipynb: code cell 15 holds a count" in found
    assert "bad.ipynb: holds widget state" in found
    assert "bad.ipynb: has 16 code cells, at most 15 are allowed" in found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=120, store_widget_state=False, resources={"metadata": {"path": tmp_path}})
    started = time.perf_counter()
    client.execute()
    assert time.perf_counter() - started < MOST_SECONDS
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert [output for output in shown if output.output_type == "error" or output.get("name") == "stderr"] == []
