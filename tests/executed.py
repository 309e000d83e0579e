"""The notebooks as `jupyter execute` leaves them, each run once for all tests."""

import os
import tempfile
import time
from functools import cache
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
INLINE = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}


@cache
def executed(path: Path) -> tuple[nbformat.NotebookNode, float]:
    """The notebook with its outputs, and with widget state where there is any; and the seconds that it took."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "notebooks")
        place.mkdir()
        started = time.perf_counter()
        client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": place}})
        client.execute(env=os.environ | INLINE)
        return notebook, time.perf_counter() - started
