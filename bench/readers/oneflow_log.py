"""Reading OneFlow logs of 200 MB: seconds and memory, beside a loop that only takes the lines.

Two logs are made: one of a long training, with a few graphs and then metrics and level 3's lines without end; and one
in which graphs are built without end, which is the most that a log can hold. Memory has to follow what was found, not
the size of the file. Run from the repository root: `python bench/readers/oneflow_log.py [--megabytes N]`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

SECONDS_BUDGET = 60.0
# Each runs in a process of its own, whose largest size is then that of the reading; VmHWM tells it.
COMMON = """
import json, re, sys, time
from pathlib import Path
from nbkit.readers.oneflow.reader import read_oneflow_log
def size(): return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024
read_oneflow_log(Path(sys.argv[2]))
before, start, cpu = size(), time.perf_counter(), time.process_time()
rows = 0
"""
READ = """
trace = read_oneflow_log(Path(sys.argv[1]))
rows = sum(map(len, trace.frames.values()))
"""
LOOP = """
with open(sys.argv[1], encoding="utf-8") as file:
    for line in file: rows += 1
"""
END = """
seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
print(json.dumps({"seconds": seconds, "cpu": cpu_seconds, "grown": size() - before, "rows": rows}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200, help="size of each log (default: 200)")
    wanted = parser.parse_args().megabytes * 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.log", Path(folder) / "large.log"
        write(small, graph("Small_0", 20), 20_000)
        makers: dict[str, Callable[[], Iterator[str]]] = {"long training": training, "graph upon graph": graphs}
        for what, make in makers.items():
            write(large, make(), wanted)
            report(what, small, large)


def write(path: Path, pieces: Iterator[str], size_bytes: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        for piece in pieces:
            file.write(piece)
            if file.tell() >= size_bytes:
                return


def training() -> Iterator[str]:
    """Yields three graphs of 1,000 ops, then metrics, and lines of actors and of memory."""
    for number in range(3):
        yield from graph(f"Train_{number}", 1000)
    for step in count(19, 20):
        for actor in range(200):
            yield glog(f" Actor {step}{actor} act, register {actor * 7} is ready", "actor.cpp:321") + "\n"
        yield f"[08/24 02:43:44 lb.utils.events]:  iteration: {step}/100000000  total_loss: 2.5  lr: 8.00e-04  \n"


def graphs() -> Iterator[str]:
    for number in count():
        yield from graph(f"Net_{number}", 1000)


def graph(name: str, ops: int) -> Iterator[str]:
    """Yields a chain of ops that are tried and added, and the listing of their graph."""
    yield f"(GRAPH:{name}:Net) start building graph.\n(MODULE:model:Chain(width=1024))\n"
    for number in range(ops):
        yield traced(name, number)
    yield f"(GRAPH:{name}:Net) building graph Done! Cost time: 6.16s.\n\n"
    yield f"{name} with operators:\n(GRAPH:{name}:Net): (\n"
    yield "  (MODULE:model:Chain(width=1024)): (\n"
    for number in range(ops):
        yield f"    {operator(number)}\n"
    yield "  )\n)\n"


def traced(graph_name: str, number: int) -> str:
    name, before = f"model.blocks.{number // 50}-scalar_mul-{number}", source(number)
    pair = 'key: "%s"\n    value {\n      s: "%s"\n    }\n  }\n'
    body = f'name: "{name}"\ndevice_tag: "cuda"\nscope_symbol_id: {number // 3}\n'
    loc = "Python Stack[-1]: \\'forward\\' at \\'/me/net.py\\': line 160; ... 7 more"
    conf = f'loc: "{loc}"\nuser_conf {{\n  op_type_name: "scalar_mul"\n'
    slots = f"  input {{\n    {pair % ('in', before)}  output {{\n    {pair % ('out', f'{name}/out_0')}"
    rest = '  attr {\n    key: "operand"\n    value {\n      at_double: 0.5\n    }\n  }\n'
    order = '  input_order: "in"\n  output_order: "out"\n}\n\n'
    head = glog(f"Lazy nn.Graph name {graph_name} try to add op: ", "lazy_op_interpreter.cpp:839")
    tail = glog(f"Lazy nn.Graph name {graph_name} add op : ", "lazy_op_interpreter.cpp:842")
    return f"{head}\n{body}{conf}{slots}{rest}{order}{tail}\n{name}\n"


def source(number: int) -> str:
    return f"model.blocks.{(number - 1) // 50}-scalar_mul-{number - 1}/out_0" if number else "_input.0.0_x/out"


def operator(number: int) -> str:
    name = f"model.blocks.{number // 50}-scalar_mul-{number}"
    seen = "(sbp=(S(0)), size=(8, 1024, 1024), dtype=(oneflow.bfloat16))"
    placement = 'placement=(oneflow.placement(type="cuda", ranks=[0, 1]))'
    return f"(OPERATOR: {name}({source(number)}:{seen}) -> ({name}/out_0:{seen}), {placement})"


def glog(message: str, site: str) -> str:
    return f"I20220824 02:43:23.489161 1392289 {site}] {message}"


def report(what: str, small: Path, large: Path) -> None:
    loop, read = (run(COMMON + part + END, small, large) for part in (LOOP, READ))
    size = large.stat().st_size
    print(f"{what}: {size / 1e6:,.0f} MB, {loop['rows']:,.0f} lines, {read['rows']:,.0f} rows of frames")
    wall, cpu = read["seconds"], read["cpu"]
    print(f"  read in {wall:.1f} s ({wall / SECONDS_BUDGET:.2f} of the budget), {cpu:.1f} s of CPU time", end=" ")
    print(f"({cpu / SECONDS_BUDGET:.2f} of the budget, {cpu / loop['cpu']:.1f} x a plain loop)")
    print(f"  memory grew by {read['grown'] / 1e6:,.0f} MB: {read['grown'] / size:.2f} x the file", end=", ")
    print(f"{read['grown'] / max(read['rows'], 1):,.0f} bytes per row (loop: {loop['grown'] / 1e6:,.0f} MB)")


def run(script: str, small: Path, large: Path) -> dict[str, float]:
    command = [sys.executable, "-c", script, str(large), str(small)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=os.getcwd())
    found: dict[str, float] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    main()
