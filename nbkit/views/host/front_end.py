"""Asks what front end runs code in this process, without importing ipykernel."""

import sys
from typing import Any


def has_live_front_end() -> bool:
    """Tells whether a widget can be used: this process is a Jupyter kernel, and somebody sees what its cells show."""
    return _kernel() is not None and not is_headless()


def is_headless() -> bool:
    """Tells whether cells run for a file that is written, and for nobody who could use a widget.

    nbclient, and with it `nbconvert --execute`, `jupyter execute` and papermill, tells the kernel that it takes no
    input; a front end with a reader takes it. What such a run shows is seen later, without this kernel.
    """
    return _kernel() is not None and _request().get("content", {}).get("allow_stdin") is False


def shell() -> Any:
    """Returns the IPython shell of the kernel that there must be."""
    return _kernel().shell


def cell_of_run() -> tuple[str | None, str]:
    """Returns the id of the notebook's cell that runs now, null where the front end gives none, and that of the run."""
    request = _request()
    return request.get("metadata", {}).get("cellId"), str(request.get("header", {}).get("msg_id"))


def deleted_cells() -> list[str]:
    """Returns the ids of cells that were deleted since the last run, as far as the front end says so."""
    return list(_request().get("metadata", {}).get("deletedCells", ()))


def _request() -> Any:
    """Returns the message by which a front end asked for what runs now."""
    return _kernel().get_parent("shell") or {}


def _kernel() -> Any:
    """Returns the Jupyter kernel of this process; None if it has none."""
    kernelapp = sys.modules.get("ipykernel.kernelapp")
    if kernelapp is None or not kernelapp.IPKernelApp.initialized():
        return None
    return kernelapp.IPKernelApp.instance().kernel
