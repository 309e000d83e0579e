"""Every notebook runs from top to bottom on a CPU, is short, and is committed without outputs."""

import json
import re

import pytest

from nbkit.views.host.outputs import WIDGET_VIEW
from tests.support.executed import NOTEBOOKS, executed
from tests.support.notebook_files import faults

MOST_SECONDS = 60  # of CPU time, so that a loaded machine takes no more
# What viewers show without a kernel and without JavaScript.
STILL = {"text/html", "image/svg+xml", "image/png", "text/plain"}


def test_there_are_notebooks():
    names = {
        "01_trace_a_step",
        "02_where_time_goes",
        "03_device_vs_cpu",
        "04_audit_a_training_step",
        "05_cost_before_running",
        "06_graphs_of_four_frameworks",
        "07_capture_and_fix",
        "08_side_by_side",
    }
    assert names <= {path.stem for path in NOTEBOOKS}


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
def test_notebook_runs(path):
    notebook, seconds = executed(path)
    assert seconds < MOST_SECONDS
    assert [each for each in outputs(notebook) if each.output_type == "error" or each.get("name") == "stderr"] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_output_has_a_form_that_needs_no_widget_and_no_script(path):
    shown = [each.data for each in outputs(executed(path)[0]) if "data" in each]
    assert len(shown) > 5
    assert [list(data) for data in shown if not data.keys() & STILL or WIDGET_VIEW in data] == []
    tables = [data["text/html"] for data in shown if "nbkit-static" in data.get("text/html", "")]
    assert len(tables) >= 2
    assert [found for table in tables for found in re.findall(r"<script|<iframe|src=|https?:", table)] == []


def outputs(notebook):
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
