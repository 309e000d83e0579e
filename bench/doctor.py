"""Asks whether `nbkit doctor` names the cause of a broken step first, at which cost, and leaves right steps alone.

Run from the repository root: `python bench/doctor.py [NAME ...] [--right]`; NAME is a number of ../shared/cases, or of
../shared/reports with an r before it. Writes out/bench/doctor.md. A script is run under `python -m nbkit doctor SCRIPT
--step step` in a forked process; the finding that has all strings which the case asks for is to be the first or second,
unless `audit`, which is asked then, has none either. With `--times` its steps are recorded by opdoctor and by each verb
alone, too, for what that takes. `--right` records a training step of each of the families of correct models: no error,
no warning. Without ../shared only these are looked at.
"""

import argparse
import contextlib
import io
import os
import pickle
import runpy
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch

import nbkit
from bench.correct_models import steps
from bench.families import FAMILIES
from nbkit.command_line.main import main as nbkit_main
from nbkit.findings.finding import wrong

ROOT = Path(__file__).parents[1]
OUT = ROOT / "out" / "bench" / "doctor.md"
SHARED = ROOT.parent / "shared"
ALONE = ("opcheck", "opaudit", "optime", "opcost")
STEPS, WANTED, MOST_TIMES, RIGHT = 3, 0.9, 3.0, 30
FIRST = (1, 2)
# By name: strings that the finding holds which names the cause; without are those that need another model beside.
CAUSES = {
    "01": ["error, nan: aten.div", "`distance = (a - b).pow(2).sum(-1).sqrt()`"],
    "04": ["error, overflow: aten.bmm", "`att = torch.matmul(q, k.transpose(-1, -2))"],
    "06": ["lost_update", "all 4 parameters"],
    "08": ["error, overflow: aten.addmm", "h = self.rnn(x[:, t], h)`"],
    "13": ["skipped_step: GradScaler skips all 100 optimizer steps", "the gradient of weight of Linear"],
    "14": ["unintended_broadcast", "`loss = ((pred - y) ** 2).mean()`"],
    "16": ["no_gradient: encoder.a, encoder.b", "z.detach().numpy()"],
    "19": ["dropout_in_eval", "F.dropout(torch.relu(self.a(self.drop(x))), 0.3)"],
    "21": ["overwritten_view", "`part *= self.scale"],
    "23": ["unshifted_targets", "ids.flatten())"],
    "24": ["accumulated_gradient", "loss.backward(); opt.step()"],
    "26": ["double_activation"],
    "28": ["scalar_reads", "`for l in losses: total += l.item()`"],
    "30": ["parameter_casts", "F.linear(x.to(torch.bfloat16)"],
    "32": ["attention: 3 calls of attention", "self.drop(s.softmax(-1)) @ v"],
    "34": ["unused_graph", "`for x in data: outs.append(net(x))`"],
    "36": ["data_loading", "`for x, y in loader:`"],
    "37": ["layout_conversions", "`return x.contiguous().view("],
    "43": ["unusual_batch", "Sample 11 of the batch of step 37"],
    "45": ["vanishing_gradient", "along 8 Linear layers"],
    "48": ["mismatch", "aten._softmax", ".softmax(-1) @ self.v(y))`"],
    "50": ["zero_gradient", "all 14 parameters"],
    "r04": ["no_gradient", "blocks"],
    "r10": ["overflow: aten.pow"],
    "r11": ["nan: aten.div", "svd"],
    "r12": ["nan: aten.log"],
    "r13": ["inf: aten.log"],
    "r14": ["inf: aten.log"],
    "r15": ["addcmul_"],
    "r16": ["mismatch", "aten.convolution"],
    "r20": ["mismatch", "scaled_dot_product"],
    "r35": ["kept_graph"],
}  # fmt: skip


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="cases; all without")
    parser.add_argument("--times", action="store_true", help="what opdoctor takes beside the dearest verb")
    parser.add_argument("--right", action="store_true", help="only the families of correct models")
    options = parser.parse_args(words)
    torch.set_num_threads(1)
    rows = [] if options.right else [row for name in options.names or CAUSES if (row := judged(name, options.times))]
    families = [] if options.names else list(FAMILIES)[:: max(len(FAMILIES) // RIGHT, 1)]
    right = [(name, forked(right_step, name)) for name in families]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text := "\n".join(report(rows, right)) + "\n")
    print(text)
    return int(not is_good(rows, right))


def is_good(rows: Sequence[dict[str, Any]], right: Sequence[tuple[str, Any]]) -> bool:
    named = [row for row in rows if row["is_named"]]
    first = sum(row["doctor"] in FIRST for row in named)
    times = [row["times"] for row in rows if "times" in row]
    return first >= WANTED * len(named) and all(not said for _, said in right) and median(times or [0]) <= MOST_TIMES


def judged(name: str, has_times: bool) -> dict[str, Any] | None:
    """Returns at which place the commands name the cause, and what opdoctor takes beside the dearest verb alone."""
    folder, number = (SHARED / "reports", name[1:]) if name.startswith("r") else (SHARED / "cases", f"case_{name}")
    path = next(iter(sorted(folder.glob(f"{number}*.py"))), None)
    if path is None:
        print(f"{name}: skipped, {folder} does not have it", flush=True)
        return None
    row: dict[str, Any] = {"name": path.stem, "text": forked(commanded, "doctor", path)}
    row["doctor"] = place(row["text"], CAUSES[name])
    row["is_named"] = row["doctor"] in FIRST or place(forked(commanded, "audit", path), CAUSES[name]) is not None
    if has_times:
        alone = {verb: forked(recorded, verb, path)[1] for verb in ALONE}
        row["dearest"] = max(alone, key=lambda verb: alone[verb])
        row["times"] = forked(recorded, "opdoctor", path)[1] / max(alone.values())
    print({key: value for key, value in row.items() if key != "text"}, flush=True)
    return row


def place(text: str, wanted: Sequence[str]) -> int | None:
    """Returns the number of the finding that holds all of the strings, from 1; null if none does."""
    for paragraph in text.split("\n\n"):
        number, _, rest = paragraph.partition(". ")
        if number.isdecimal() and all(one in " ".join(rest.split()) for one in wanted):
            return int(number)
    return None


def commanded(command: str, path: Path) -> str:
    """Returns what a subcommand says of the function `step` of a script, which runs to its end."""
    os.chdir(path.parent)
    with _quiet() as out, contextlib.suppress(BaseException):  # the script's own errors pass through
        nbkit_main([command, str(path), "--step", "step"])
    return out.getvalue()


def recorded(verb: str, path: Path) -> tuple[str, float]:
    """Returns the brief of some steps under a verb, and how long it took from beginning to brief."""
    sys.path.insert(0, str(path.parent))
    with _quiet():
        step: Callable[..., Any] = runpy.run_path(str(path))["step"]
        takes_number = step.__code__.co_argcount > 0 and path.stem != "case_48"
        began = time.perf_counter()
        with contextlib.suppress(Exception), getattr(nbkit, verb)() as trace:
            for number in range(STEPS):
                step(*[number] * takes_number)
        return trace.brief(), time.perf_counter() - began


def right_step(name: str) -> list[str]:
    """Returns what opdoctor holds for wrong in training steps of a correct model; it raised where nothing came back."""
    with _quiet():
        recorder = nbkit.opdoctor()
        steps(FAMILIES[name], "float32", recorder)
        return wrong(recorder.trace.findings)["message"].tolist()  # type: ignore[union-attr]


def forked(work: Callable[..., Any], *arguments: Any) -> Any:
    """Returns what the function returns in a process of its own; the error in words where it raises."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            made = work(*arguments)
        except BaseException as error:
            made = f"{type(error).__name__}: {error}"
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(made, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        made = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(made) if made else "the process ended"


@contextlib.contextmanager
def _quiet() -> Iterator[io.StringIO]:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()) as out:
        warnings.simplefilter("ignore")
        yield out


def report(rows: Sequence[dict[str, Any]], right: Sequence[tuple[str, Any]]) -> Iterator[str]:
    named = [row for row in rows if row["is_named"]]
    first = sum(row["doctor"] in FIRST for row in named)
    yield f"# nbkit doctor: {first} of {len(named)} causes first or second\n"
    if times := [row["times"] for row in rows if "times" in row]:
        yield f"opdoctor takes {median(times):.2f} times the dearest verb alone (median), at most {max(times):.2f}.\n"
    if rows:
        yield "| case | place of its cause | dearest verb | opdoctor / it |\n|---|---|---|---|"
    for row in rows:
        ratio = f"{row['times']:.2f}" if "times" in row else ""
        yield f"| {row['name']} | {row['doctor'] or '-'} | {row.get('dearest', '')} | {ratio} |"
    if right:
        yield f"\n{sum(not said for _, said in right)} of {len(right)} right steps: nothing wrong.\n"
        yield from (f"- {name}: {said}" for name, said in right if said)
    for row in rows:
        if row["doctor"] not in FIRST:
            yield f"\n## {row['name']}\n\n```text\n{row['text'].strip()}\n```"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
