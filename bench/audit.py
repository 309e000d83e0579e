"""Asks whether nbkit names the cause of each broken step in bench/cases, within 1,500 tokens.

Run from the repository root: `python bench/audit.py [NAME ...]`; NAME is a case or a folder of them. Writes
out/bench/audit.md and ends with status 1 where fewer than WANTED of all cases are named. `--command` asks
`python -m nbkit audit CASE --step step` alone, as a user would; `--folder FOLDER` prints what that says of others.

A case is named if one finding of an answer has all strings that the case's docstring asks for. The answers are the
briefs of opaudit, opcheck and optime, each of the steps recorded anew, and where these miss it that of the command.
"""

import argparse
import contextlib
import io
import os
import re
import runpy
import subprocess
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist

import nbkit
from bench.cases import Case, cases

ROOT = Path(__file__).parents[1]
OUT = ROOT / "out" / "bench" / "audit.md"
COMMAND = "audit"
VERBS = ("opaudit", "opcheck", "optime", COMMAND)
PYTHON = [sys.executable]  # of the command; the tests give one that has imported torch
TOKENS = 1500
WANTED = 0.9


@dataclass(frozen=True)
class Verdict:
    """Describes what became of one case; `by` is the verb whose answer names it, `answers` its texts."""

    case: Case
    by: str | None
    answers: dict[str, str]


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="cases or folders of bench/cases; all without")
    parser.add_argument("--command", action="store_true", help="ask the command alone")
    parser.add_argument("--folder", type=Path, help="print what the command says of the scripts of this folder")
    options = parser.parse_args(words)
    torch.set_num_threads(1)
    if options.folder is not None:
        for path in sorted(options.folder.glob("case_*.py")):
            print(f"## {path.stem}\n\n```text\n{commanded(path)}\n```\n", flush=True)
        return 0
    verdicts = []
    for case in cases(options.names):
        verdicts.append(verdict := judged(case, (COMMAND,) if options.command else VERBS))
        print(f"{case.name}: {verdict.by or 'NOT NAMED'}", flush=True)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text := "\n".join(report(verdicts)) + "\n")
    print(text)
    return int(sum(verdict.by is not None for verdict in verdicts) < WANTED * len(verdicts))


def judged(case: Case, verbs: Sequence[str] = VERBS) -> Verdict:
    """Returns the first verb that names a case; further ones are not asked."""
    answers: dict[str, str] = {}
    for verb in verbs:
        answers[verb] = commanded(case.path) if verb == COMMAND else answer(case, verb)
        if is_named(case, answers[verb]):
            return Verdict(case, verb, answers)
    return Verdict(case, None, answers)


def answer(case: Case, verb: str) -> str:
    """Returns the brief of the steps of a case, which run from its beginning; how they raise is said after it."""
    with _quiet(), _alone():
        step = runpy.run_path(str(case.path))["step"]
        raised = ""
        with getattr(nbkit, verb)() as trace:
            try:
                for number in range(case.steps):
                    step(number)
            except Exception:  # what was recorded until then is judged
                raised = traceback.format_exc(limit=-1)
    return f"{trace.brief(tokens=TOKENS)}\n\n{raised}".strip()


def commanded(path: Path) -> str:
    """Returns what the command says of the function `step` of a script, which it runs to its end."""
    words = [*PYTHON, "-m", "nbkit", COMMAND, str(path), "--step", "step", "--tokens", str(TOKENS)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr.strip()


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Ends the process group that a case has begun: what comes after it is one process again."""
    try:
        yield
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def is_named(case: Case, text: str) -> bool:
    """Returns whether one paragraph of an answer, which is one finding, has all that the case asks for."""
    text = text.replace(case.path.name, "case.py")  # the name of the file says what is wrong
    paragraphs = [re.sub(r"\s+", " ", paragraph) for paragraph in text.split("\n\n")]
    expected = [re.sub(r"\s+", " ", each) for each in case.expected]
    return any(all(each in paragraph for each in expected) for paragraph in paragraphs)


def report(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yields all of it in Markdown: a row for each case, and the answers that do not name theirs."""
    named = [verdict for verdict in verdicts if verdict.by]
    yield f"# Broken steps: {len(named)} of {len(verdicts)} causes named\n"
    yield "| case | mistake | named by |\n| --- | --- | --- |"
    for verdict in verdicts:
        yield f"| {verdict.case.name} | {verdict.case.mistake} | {verdict.by or '**not named**'} |"
    for verdict in verdicts:
        if not verdict.by:
            yield f"\n## {verdict.case.name}\n\nExpected in one finding: {'; '.join(verdict.case.expected)}"
            for verb, text in verdict.answers.items():
                yield f"\n{verb}:\n\n```text\n{text}\n```"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
