"""Runs opdiff, opcheck, opaudit, opfallback and opcast on correct models of many families, in three precisions.

A training step with its optimizer is run twice, each run in a process of its own. Whatever a verb finds is false unless
torch itself is wrong: nothing may end the process or hang, no bit may differ from the bare steps, and the verbs should
have nothing to say. Hints of opaudit are listed and not counted: some are true of these steps, which seed anew.

Run from the repository root: `python bench/correct_models.py [NAME ...] [--list]`. Writes out/bench/correct_models.md.
"""

import argparse
import json
import os
import signal
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import nbkit
from bench.families import FAMILIES
from bench.families.inputs import Family

OUT = Path(__file__).parents[1] / "out" / "bench" / "correct_models.md"
PRECISIONS = ("float32", "bfloat16", "autocast")
STEPS = 2
SECONDS = 300
Result = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["*"], help="families, as patterns")
    parser.add_argument("--list", action="store_true", help="print the families' names")
    options = parser.parse_args()
    names = [name for name in FAMILIES if any(fnmatch(name, pattern) for pattern in options.names)]
    if options.list:
        print("\n".join(names))
        return 0
    torch.set_num_threads(1)
    results = [measured(name, precision) for name in names for precision in PRECISIONS]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text := "\n".join(report(results)) + "\n")
    print(text)
    return int(any(result["verdict"] not in ("silent", "not run") for result in results))


def measured(name: str, precision: str) -> Result:
    """What a process of its own makes of a family; how it ended, if not by itself."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # whoever forks may handle it
        signal.alarm(SECONDS)
        with os.fdopen(writing, "w") as pipe:
            json.dump(looked_at(FAMILIES[name], precision), pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    result: Result = json.loads(text) if text else {"verdict": ended(status), "lines": []}
    print(f"{name}, {precision}: {result['verdict']}", file=sys.stderr, flush=True)
    return {"name": name, "precision": precision, **result}


def ended(status: int) -> str:
    number = os.waitstatus_to_exitcode(status)
    return f"HANGS (over {SECONDS} s)" if number == -signal.SIGALRM else f"THE PROCESS ENDS ({number})"


def looked_at(family: Family, precision: str) -> Result:
    """What the verbs say of a family, and whether its bits stay the same."""
    warnings.simplefilter("ignore")
    try:
        bare = steps(family, precision, nullcontext())
    except Exception as error:  # no kernel in this precision, say: nobody can run it
        return {"verdict": "not run", "lines": [f"the bare step raises {type(error).__name__}: {str(error)[:120]}"]}
    try:
        return judged(family, precision, bare)
    except Exception:
        return {"verdict": "RAISES", "lines": traceback.format_exc().splitlines()[-3:]}


def judged(family: Family, precision: str, bare: list[Tensor]) -> Result:
    with_diff, diff = recorded(family, precision, nbkit.opdiff(keep=0))
    with_check, check = recorded(family, precision, nbkit.opcheck())
    with_audit, audit = recorded(family, precision, nbkit.opaudit())
    made = {
        "opdiff": with_diff,
        "opcheck": with_check,
        "opaudit": with_audit,
        "opfallback": steps(family, precision, nbkit.opfallback()),
        "opcast's dry run": steps(family, precision, nbkit.opcast("float16", dry_run=True)),
    }
    differing = [name for name, values in made.items() if not same(bare, values)]
    lines = list(said(diff, check, audit))
    statuses = Counter(diff.diffs["status"])
    wrong = sum(statuses[status] for status in ("mismatch", "shape", "dtype", "failed"))
    hints = audit.findings["severity"] == "hint"
    findings = len(check.findings) + int((~hints).sum())
    parts = [
        f"other bits under {', '.join(differing)}" if differing else "",
        f"{wrong} of {len(diff.diffs):,} wrong" if wrong else "",
        f"{findings} findings" if findings else "",
    ]
    verdict = ", ".join(filter(None, parts)) or "silent"
    counts = {"rows": len(diff.diffs), "reduced": statuses["reduced"], "hints": int(hints.sum())}
    return {"verdict": verdict, "lines": lines, **counts}


def recorded(family: Family, precision: str, recorder: Any) -> tuple[list[Tensor], nbkit.Trace]:
    """The same steps under a verb, and its trace."""
    traces: list[nbkit.Trace] = []

    @contextmanager
    def kept() -> Iterator[None]:
        with recorder as trace:
            traces.append(trace)
            yield

    return steps(family, precision, kept()), traces[0]


def steps(family: Family, precision: str, recorder: AbstractContextManager[Any]) -> list[Tensor]:
    """Losses of some training steps, and what the model holds after them."""
    model, loss = family()
    if precision == "bfloat16":
        model = model.to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    values = []
    with recorder:
        for _ in range(STEPS):
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == "autocast"):
                value = loss()
            value.backward()
            optimizer.step()
            optimizer.zero_grad()
            values.append(value.detach())
    return [*values, *state_of(model)]


def state_of(model: nn.Module) -> Iterator[Tensor]:
    for tensor in model.state_dict().values():
        yield tensor.detach().clone()


def same(left: list[Tensor], right: list[Tensor]) -> bool:
    """Whether all bits are equal; NaN is equal to itself."""
    return all(torch.equal(one.nan_to_num(7), other.nan_to_num(7)) for one, other in zip(left, right, strict=True))


def said(diff: nbkit.Trace, check: nbkit.Trace, audit: nbkit.Trace) -> Iterator[str]:
    rows = diff.diffs[~diff.diffs["status"].isin(["ok", "skipped"])]
    for row in rows.itertuples():
        where = f"{row.op} in {row.module}, {row.phase}, {row.dtype}{row.shape}"
        yield f"{row.status}: {where}, noise ratio {row.noise_ratio:.3g}: {row.message}"
    for trace in (check, audit):
        for row in trace.findings.itertuples():
            where = f" in {row.module}" if isinstance(row.module, str) else ""
            yield f"{trace.meta['verb']}, {row.severity}: {row.op}{where}, {row.rule}: {row.message}"


def report(results: list[Result]) -> Iterator[str]:
    rows, reduced, hints = (sum(result.get(key, 0) for result in results) for key in ("rows", "reduced", "hints"))
    silent = sum(result["verdict"] == "silent" for result in results)
    left_out = sum(result["verdict"] == "not run" for result in results)
    yield "# What opdiff, opcheck and opaudit say of correct models"
    yield f"\ntorch {torch.__version__}, {len(results)} runs of {STEPS} training steps: {silent} silent,"
    yield f"{left_out} that torch itself cannot run, {len(results) - silent - left_out} with something to say;"
    yield f"{rows:,} tensors compared, {reduced} of them `reduced`; {hints} hints of opaudit.\n"
    yield "| family | precision | verdict |\n|---|---|---|"
    for result in results:
        yield f"| {result['name']} | {result['precision']} | {result['verdict']} |"
    for result in results:
        if result["lines"]:
            yield f"\n## {result['name']}, {result['precision']}\n"
            yield from (f"- {line}" for line in result["lines"])


if __name__ == "__main__":
    sys.exit(main())
