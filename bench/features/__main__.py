"""Prints the table of features: `python -m bench.features [TOOL ...] [--name WORDS]`, from the repository root.

A row is `works` where its check holds, `partly` where it holds and something is known to be left out, `fails` with the
reason otherwise, `not tried` where the tool's own file is not there. Ends with status 1 if a row fails. Writes
out/bench/features.md.
"""

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from bench.features.registry import FEATURES

ROOT = Path(__file__).parents[2]
OUT = ROOT / "out" / "bench" / "features.md"
TOOLS = ("oneflow", "paddle", "ditorch", "exporters", "analyzer", "notebook")


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", nargs="*", metavar="TOOL", help=", ".join(TOOLS))
    parser.add_argument("--name", default="", help="rows with these words in their name")
    options = parser.parse_args(words)
    warnings.simplefilter("ignore")
    for tool in options.tools or TOOLS:
        if (Path(__file__).parent / f"{tool}.py").exists():
            import_module(f"bench.features.{tool}")
    counts: Counter[str] = Counter()
    lines = ["| tool | feature | how | verdict | why | s |", "|---|---|---|---|---|---|"]
    print("\n".join(lines))
    for row in (row for row in FEATURES if options.name in row.name):
        verdict, why, seconds = row.tried()
        counts[verdict] += 1
        lines.append(f"| {row.tool} | {row.name} | {row.how} | {verdict} | {why.replace('|', '/')} | {seconds:.1f} |")
        print(lines[-1], flush=True)
    lines.append("\n" + ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))
    print(lines[-1])
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text("\n".join(lines) + "\n")
    return int(counts["fails"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
