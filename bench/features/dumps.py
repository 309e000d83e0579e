"""Shows graphs of dumps where their users see them: in a notebook that runs, and on the page of a report."""

import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

import nbkit
from bench.harness.chromium import browser


def in_notebook(cell: str) -> str:
    """Runs a cell in a kernel; returns the text of its outputs, which have a widget."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(f"%load_ext nbkit\n{cell}")])
    outputs = NotebookClient(notebook, timeout=120, kernel_name="python3").execute().cells[0].outputs
    held = [output.get("data", {}) for output in outputs]
    assert any("text/html" in data for data in held)
    return "\n".join(data.get("text/plain", "") for data in held)


def opened(trace: nbkit.Trace) -> str:
    """Returns the HTML of a report."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        nbkit.opreport(trace, path=path)
        return path.read_text()


def on_page(trace: nbkit.Trace) -> tuple[str, list[str]]:
    """Opens a report in a browser; returns what the graph's outline says, and errors of the page."""
    errors: list[str] = []
    with tempfile.TemporaryDirectory() as folder, browser() as started:
        path = Path(folder) / "report.html"
        nbkit.opreport(trace, path=path)
        page = started.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(path.as_uri())
        outline = page.locator('[role="tree"]').first
        outline.wait_for()
        return outline.inner_text(), errors
