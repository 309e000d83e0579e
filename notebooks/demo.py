"""Runs the first notebook headless, times and checks a step like its own, and writes one report: `make demo`."""

from pathlib import Path

import nbformat
import torch
from nbclient import NotebookClient

import nbkit
from sample_models.rwkv4 import RWKV4, RWKV4Config

NOTEBOOK = Path(__file__).with_name("01_trace_a_step.ipynb")
OUT = NOTEBOOK.parents[1] / "out"


def run_notebook() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    # The notebook saves its first trace under out/; kernels run in their notebook's folder, as in JupyterLab.
    folder = {"metadata": {"path": str(NOTEBOOK.parent)}}
    # A kernel warns that its port, which is open to this machine only, is not encrypted.
    quiet = ["--IPKernelApp.log_level=ERROR"]
    client = NotebookClient(notebook, timeout=300, store_widget_state=False, resources=folder, extra_arguments=quiet)
    client.execute()


def timed_and_checked() -> list[nbkit.Trace]:
    """Checks a training step of RWKV-4: its time, whether NaN or Inf begin in it, whether each op is correct."""
    torch.manual_seed(0)
    model = RWKV4(RWKV4Config(vocab_size=256, context_length=64, width=64, layers=2, head_qk=32))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ids = torch.randint(256, (4, 33))

    def step() -> None:
        optimizer.zero_grad()
        model(ids[:, :-1], ids[:, 1:]).backward()
        optimizer.step()

    timed = nbkit.optime(warmup=2, repeats=10, memory=True, name="RWKV-4 of 2 layers").run(step)
    traces = [timed]
    for verb in (nbkit.opcheck, nbkit.opdiff):
        with verb(name="RWKV-4 of 2 layers") as trace:
            step()
        traces.append(trace)
    return traces


def main() -> None:
    run_notebook()
    traces = [*timed_and_checked(), nbkit.load(OUT / "rwkv4_step")]
    report = nbkit.opreport(*traces, path=OUT / "demo.html", title="A training step of RWKV-4")
    print(traces[0].summary())
    print(f"\nAll of it: open {report.relative_to(OUT.parent)} in a browser; it needs no network.")


if __name__ == "__main__":
    main()
