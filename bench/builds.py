"""Measures what a verb takes of CPU time beside an older build of nbkit, on the models of first_hour_models.py.

Run from the repository root: `python bench/builds.py REVISION [--verb opcost] [--model NAME ...] [--cell]`. Each round
runs both builds, each in a process of its own, one after the other, one thread; the first run of a process and those
after it are told apart. The older build comes from git into a temporary folder, which is removed. With `--cell` a run
is a cell of IPython with the verb's magic and what that shows, else a call of the Python interface and its brief.
"""

import argparse
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

ROOT = Path(__file__).parents[1]
MODELS = ("gpt2", "resnet", "rwkv", "mixture_of_experts")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", help="of git: the older build")
    parser.add_argument(
        "--verb", default="opcost", help="a recording of the Python interface with run() (default: opcost)"
    )
    parser.add_argument("--model", nargs="*", default=["gpt2", "rwkv"], choices=MODELS, help="default: gpt2 and rwkv")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each build (default: 3)")
    parser.add_argument("--runs", type=int, default=3, help="runs in each process, two or more (default: 3)")
    parser.add_argument("--cell", action="store_true", help="run the magic in a cell of IPython")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        print(*measured(options))
        return
    with tempfile.TemporaryDirectory() as folder:
        older = Path(folder, "older")
        git("worktree", "add", "--detach", str(older), options.revision)
        try:
            for model in options.model:
                print(compared(model, older, options), flush=True)
        finally:
            git("worktree", "remove", "--force", str(older))


def git(*words: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True)


def compared(model: str, older: Path, options: argparse.Namespace) -> str:
    """Returns a sentence with the CPU seconds of both builds and their ratio, of first and of later runs."""
    spent: dict[Path, list[list[float]]] = {ROOT: [], older: []}
    for _ in range(options.rounds):
        for build, rounds in spent.items():
            rounds.append(in_process(build, model, options))
    parts = []
    for name, part in (("first runs", slice(0, 1)), ("later runs", slice(1, None))):
        now, before = (median([second for one in rounds for second in one[part]]) for rounds in spent.values())
        parts.append(f"{name} {before:.2f} -> {now:.2f} s, {now / before:.2f} times")
    return f"{options.verb} of {model}: {'; '.join(parts)}"


def in_process(build: Path, model: str, options: argparse.Namespace) -> list[float]:
    """Returns the CPU seconds of each run, by a process that imports nbkit of this build, and this very file."""
    words = ["-", "--inside", "--verb", options.verb, "--model", model, "--runs", str(options.runs)]
    words += ["--cell"] * options.cell
    own, this = (f"sys.path.insert(0, {str(folder)!r})" for folder in (build, ROOT))
    code = f"import sys; {own}; import nbkit; {this}; from bench.builds import main; main()"
    command = [sys.executable, "-c", code, *words]
    return [*map(float, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())]


def measured(options: argparse.Namespace) -> list[float]:
    """Returns the CPU seconds of each run of a verb on a training step."""
    import torch

    from bench import first_hour_models

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    run = runner(options.verb, getattr(first_hour_models, options.model[0])(), in_cell=options.cell)
    spent = []
    for _ in range(options.runs):
        before = process_time()
        run()
        spent.append(process_time() - before)
    return spent


def runner(verb: str, step: Any, *, in_cell: bool) -> Callable[[], None]:
    """Returns what runs the verb on the step once, and says or shows what came out."""
    import nbkit

    if not in_cell:
        return lambda: getattr(nbkit, verb)().run(step.train).brief()
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance(user_ns={"step": step})
    shell.run_line_magic("load_ext", "nbkit")

    def run() -> None:
        with redirect_stdout(StringIO()):
            shell.run_cell(f"%%{verb}\nstep.train()").raise_error()

    return run


if __name__ == "__main__":
    main()
