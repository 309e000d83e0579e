"""Measures what a kernel's memory grows by while an `%%optime` cell of about 80,000 rows runs again and again.

Run from the repository root: `python bench/memory_of_reruns.py [--runs N] [--calls N]`. The kernel is told which cell
runs, as by JupyterLab, Notebook 7 and VS Code. Ends with status 1 where the last run leaves more than 1.3 times what
the second left.
"""

import argparse
import re
import sys
from pathlib import Path

import psutil
from jupyter_client.manager import KernelManager

from tests.magics.kernel import Kernel

BUDGET = 1.3
CELL = "%%optime\nfor _ in range({}):\n    y = x.add(1.0)"
ROWS = re.compile(r"[\d,]+ aten ops")


def megabytes(process: psutil.Process) -> float:
    """Returns the memory that the process holds."""
    return float(process.memory_info().rss) / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="how often the cell runs")
    parser.add_argument("--calls", type=int, default=16_000, help="calls in the cell, five rows each")
    options = parser.parse_args()
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(Path(__file__).parents[1]))
    kernel = Kernel(manager)
    held = []
    try:
        kernel.run("%load_ext nbkit\nimport os, torch\nx = torch.ones(3)")
        process = psutil.Process(kernel.value("os.getpid()"))
        for run in range(1, options.runs + 1):
            (text,) = kernel.run(CELL.format(options.calls), cellId="cell").texts("display")
            held.append(megabytes(process))
            print(f"run {run}: {held[-1]:,.0f} MB after {ROWS.findall(text)[0]}", flush=True)
    finally:
        kernel.stop()
    ratio = held[-1] / held[1]
    print(f"{ratio:.2f} times the memory after the second run (budget {BUDGET})")
    return int(ratio > BUDGET)


if __name__ == "__main__":
    sys.exit(main())
