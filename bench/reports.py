"""Runs rebuilt bug reports under the verbs that they name, and prints what nbkit says first beside what is wanted.

Run from the repository root: `python bench/reports.py FOLDER [NAME ...]`; FOLDER holds scripts, NAME is how a script's
name begins. Their first lines are comments `# TRY: verb; verb` and `# WANT: ...`; a script defines `step()`, or
`left`, `right` and `inputs` for opalign. Where load or opgraph is to be tried, `step()` writes files into the folder
`files` beside the script. Each verb runs in a process of its own, on a copy of the script. Writes out/bench/reports.md,
with all that was said; who reads it judges it.
"""

import argparse
import contextlib
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import nbkit

ROOT = Path(__file__).parents[1]
OUT = ROOT / "out" / "bench" / "reports.md"
VERBS = ("opaudit", "audit", "opcheck", "opdiff", "opstable", "optime", "opcost", "opalign", "load", "opgraph")
STEPS, SECONDS, TOKENS = 3, 300, 1500
Row = tuple[str, str, str, str]  # report, verb, what is said, what is wanted


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder of scripts")
    parser.add_argument("names", nargs="*", default=[""], help="beginnings of names; all without")
    parser.add_argument("--verb", choices=VERBS, help="print what this verb says of the one script")
    options = parser.parse_args(words)
    if options.verb:
        said(options.verb, options.folder)
        return 0
    rows = [row for path in sorted(options.folder.glob("[0-9]*.py")) for row in judged(path, options.names)]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text("\n".join(report(rows)) + "\n")
    return 0


def judged(path: Path, names: Sequence[str]) -> Iterator[Row]:
    """Yields what each verb says of a script, and prints its first sentence."""
    if not path.name.startswith(tuple(names)):
        return
    header = dict(re.findall(r"^# (TRY|WANT): (.*)$", path.read_text(), re.MULTILINE))
    for verb in verbs(header.get("TRY", "")):
        text = asked(verb, path)
        print(f"{path.stem} | {verb} | {first(text)} | {header.get('WANT', '')}", flush=True)
        yield path.stem, verb, text, header.get("WANT", "")


def verbs(line: str) -> list[str]:
    """Returns the verbs that a line names, in their order there; `python -m nbkit load` is `load`."""
    return sorted((verb for verb in VERBS if re.search(rf"\b{verb}\b", line)), key=line.find)


def asked(verb: str, path: Path) -> str:
    """Returns what a verb says in a process of its own, which works on a copy of the script."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(shutil.copy(path, folder))
        (script.parent / "files").mkdir()
        words = [sys.executable, "-m", "bench.reports", str(script), "--verb", verb]
        if verb == "audit":
            words = [sys.executable, "-m", "nbkit", "audit", str(script), "--step", "step", "--tokens", str(TOKENS)]
        try:
            done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"No answer after {SECONDS} s."
        return (done.stdout.strip() or done.stderr.strip()).replace(f"{folder}/", "")


def said(verb: str, path: Path) -> None:
    """Print what a verb says of a script."""
    warnings.simplefilter("ignore")
    script = runpy.run_path(str(path))
    if verb in ("load", "opgraph"):
        script["step"]()
        print("\f", *of_files(verb, sorted((path.parent / "files").iterdir())), sep="\n\n")
        return
    if verb == "opalign":
        trace: Any = nbkit.opalign(script["left"], script["right"], inputs=script["inputs"])
    else:
        with contextlib.suppress(Exception), getattr(nbkit, verb)() as trace:  # a step may raise: that is its report
            for _ in range(STEPS):
                script["step"]()
    print(f"\n\f{trace.brief(tokens=TOKENS)}")


def of_files(verb: str, paths: Sequence[Path]) -> Iterator[str]:
    """Yields a line for each file: its brief, or the error; one that is not nbkit's is a fault."""
    for path in paths:
        try:
            text = getattr(nbkit, verb)(path).brief(tokens=300)
        except Exception as error:
            text = f"{'refused' if isinstance(error, nbkit.NbkitError) else type(error).__name__}: {error}"
        yield f"{path.name}: {' '.join(text.split())[:400]}"


def first(text: str) -> str:
    """Returns the first finding of an answer, or its first sentence where it has none."""
    paragraphs = [" ".join(one.split()) for one in text.split("\f")[-1].split("\n\n") if one.strip()]
    findings = [one for one in paragraphs if re.match(r"1\. |Nothing wrong found", one)]
    return (findings or paragraphs or ["nothing"])[0][:300]


def report(rows: Sequence[Row]) -> Iterator[str]:
    """Yields the table in Markdown, and all that was said."""
    yield "# Rebuilt bug reports\n\n| report | verb | said first | wanted |\n|---|---|---|---|"
    for name, verb, text, want in rows:
        cells = (name, verb, first(text), want)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    for name, verb, text, _ in rows:
        answer = text.split("\f")[-1].strip()
        yield f"\n## {name}, {verb}\n\n```text\n{answer}\n```"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
