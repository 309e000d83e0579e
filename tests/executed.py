"""Notebooks from cells, run, and as HTML pages; those of the repository each run once for all tests.

nbformat and what needs it take seconds to import, so they are imported at use: every worker imports every test file.
"""

import os
import tempfile
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nbformat import NotebookNode

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
INLINE = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}


def notebook_of(cells: Iterable[str], **metadata: Any) -> "NotebookNode":
    import nbformat

    code = [nbformat.v4.new_code_cell(source) for source in cells]
    return nbformat.v4.new_notebook(cells=code, metadata=metadata)


def written(cells: Iterable[str], path: Path, **metadata: Any) -> Path:
    """The path of a notebook file with these cells."""
    import nbformat

    nbformat.write(notebook_of(cells, **metadata), path)
    return path


def read(path: Path) -> "NotebookNode":
    import nbformat

    return nbformat.read(path, as_version=4)


def run(notebook: "NotebookNode", folder: str | Path, timeout: int = 120, **options: Any) -> "NotebookNode":
    """The same notebook with its outputs, and with widget state where there is any; run in a folder."""
    from nbclient import NotebookClient

    client = NotebookClient(notebook, timeout=timeout, resources={"metadata": {"path": str(folder)}}, **options)
    client.execute(env=os.environ | INLINE)
    return notebook


def page_of(notebook: "NotebookNode", **options: Any) -> str:
    """The HTML page that nbconvert makes of a notebook."""
    from nbconvert import HTMLExporter
    from traitlets.config import Config

    return str(HTMLExporter(config=Config(options)).from_notebook_node(notebook)[0])


@cache
def executed(path: Path) -> tuple["NotebookNode", float]:
    """The notebook as `jupyter execute` leaves it, and the seconds that it took."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "notebooks")
        place.mkdir()
        started = time.perf_counter()
        return run(read(path), place), time.perf_counter() - started
