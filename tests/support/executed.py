"""Notebooks from cells, run, and as HTML pages; those of the repository each run once for all tests.

nbformat and what needs it take seconds to import, so they are imported at use: every worker imports every test file.
"""

import os
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.once import once

if TYPE_CHECKING:
    from nbformat import NotebookNode

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
INLINE = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
# The CPU time of the kernel and of what it started.
SPENT = "import os\nprint(sum(os.times()[:4]))"


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


def run(notebook: "NotebookNode", folder: str | Path, timeout: int = 240, **options: Any) -> "NotebookNode":
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
    """The notebook as `jupyter execute` leaves it, and the CPU seconds that it took; it runs once for all workers."""
    import nbformat

    def made() -> bytes:
        notebook = read(path)
        notebook.cells.append(nbformat.v4.new_code_cell(SPENT))
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder, "notebooks")
            place.mkdir()
            return str(nbformat.writes(run(notebook, place))).encode()

    notebook = nbformat.reads(once(path.name, made).decode(), as_version=4)
    (spent,) = notebook.cells.pop().outputs
    return notebook, float(spent["text"])
