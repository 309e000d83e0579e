"""What `make demo` runs: the first notebook headless, then its trace as one HTML page and as a few lines of text."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

import nbkit
from nbkit.views.page import write_page

NOTEBOOK = Path(__file__).with_name("01_trace_a_step.ipynb")
OUT = NOTEBOOK.parents[1] / "out"


def main() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    # The notebook saves its first trace under out/; kernels run in their notebook's folder, as in JupyterLab.
    folder = {"metadata": {"path": str(NOTEBOOK.parent)}}
    # A kernel warns that its port, which is open to this machine only, is not encrypted.
    quiet = ["--IPKernelApp.log_level=ERROR"]
    client = NotebookClient(notebook, timeout=300, store_widget_state=False, resources=folder, extra_arguments=quiet)
    client.execute()
    trace = nbkit.load(OUT / "rwkv4_step")
    write_page(trace, OUT / "demo.html")
    print(trace.summary())
    print(f"\nThe whole trace: open {(OUT / 'demo.html').relative_to(OUT.parent)} in a browser; it needs no network.")


if __name__ == "__main__":
    main()
