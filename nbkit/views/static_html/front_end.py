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
    kernel = _kernel()
    return kernel is not None and kernel.get_parent("shell").get("content", {}).get("allow_stdin") is False


def _kernel() -> Any:
    """Returns the Jupyter kernel of this process; None if it has none."""
    kernelapp = sys.modules.get("ipykernel.kernelapp")
    if kernelapp is None or not kernelapp.IPKernelApp.initialized():
        return None
    return kernelapp.IPKernelApp.instance().kernel
