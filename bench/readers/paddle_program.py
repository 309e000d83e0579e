"""Reading a Paddle program of 285 kB: seconds of the reader alone and with the recognized structure, beside the budget.

Run from the root: `python bench/readers/paddle_program.py [PROGRAM]`; without a file a program of that size is made.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import nbkit
from nbkit.readers.paddle import read_paddle_program

BUDGET_S, ROUNDS, OPERATIONS = 0.3, 9, 450
VARIABLE = "    var tmp_{0} : LOD_TENSOR.shape(1, 2048, 4096).dtype(float16).stop_gradient(False)\n"
LAYOUT = "dims_mapping ({0}, non-annotated, non-parameter): [-1, -1, -1], partial on dims: []"
OPERATION = (
    "    {{Out=['tmp_{1}']}} = elementwise_add(inputs={{X=['tmp_{0}'], Y=['tmp_{0}']}}, axis = -1, op_device = , "
    "op_namescope = //auto_parallel/rc_{2}/, op_role = 0, op_role_var = [], with_quant_attr = False, "
    "dist_attr = {{op type: elementwise_add, op id: {0}, process_mesh (annotated): "
    "{{shape: [2,1], process_ids: [1,3], dim_names: [dp,mp]}}; "
    f"tmp_{{0}}'s {LAYOUT.format('input')}; tmp_{{1}}'s {LAYOUT.format('output')}, chunk_id: 0 }}}})\n"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", nargs="?", type=Path, help="file to read (default: one that is made)")
    given = parser.parse_args().program
    with tempfile.TemporaryDirectory() as folder:
        path = given or Path(folder) / "program.txt"
        if given is None:
            path.write_text(text())
        print(f"{path.name}: {path.stat().st_size / 1e3:,.0f} kB, {len(read_paddle_program(path).nodes):,} nodes")
        report("reader", lambda: read_paddle_program(path))
        report("nbkit.load()", lambda: nbkit.load(path))


def text() -> str:
    """Returns a chain of operations."""
    variables = "".join(VARIABLE.format(number) for number in range(OPERATIONS + 1))
    operations = "".join(OPERATION.format(number, number + 1, number // 64) for number in range(OPERATIONS))
    return f"{{ // block_idx:0  parent_idx:-1  forward_idx:-1  backward_idx:-1\n{variables}\n{operations}}}\n"


def report(what: str, read: Callable[[], object]) -> None:
    times = []
    for _ in range(ROUNDS):
        started = time.process_time()
        read()
        times.append(time.process_time() - started)
    median = statistics.median(times)
    print(f"  {what}: {median:.3f} s of CPU time, {median / BUDGET_S:.2f} of the budget of {BUDGET_S} s")


if __name__ == "__main__":
    main()
