"""Which frames the flame graph of a difference colors: of two equal runs, and where one module is planted 20 % slower.

Every pair is recorded with repeats and judged in all groupings; the run of median time of each is also compared as a
single recording. Run from the repository root: `python bench/views/flame_difference.py [--pairs N] [--load N]`. Writes
out/bench/flame_difference.md, with a load flame_difference_loaded.md.
"""

import argparse
from collections import Counter
from statistics import median

import numpy as np
import torch

from bench.compare_times import MODULE, OUT, REPEATS, SLOWER, WARMUP, module_us, planted_pairs, spinning, timed
from bench.harness.ratios import markdown
from bench.harness.steps import TrainingStep, launch_bound
from nbkit.analysis.time.compare_trees import compare_trees
from nbkit.analysis.time.timed_pair import timed_pair
from nbkit.trace.trace import Trace
from nbkit.views.flamegraph.changes import flame_changes
from nbkit.views.flamegraph.data import flame_state
from nbkit.views.flamegraph.difference import difference_state
from nbkit.views.flamegraph.trees import GROUPS, flame_tree

COLOURED = ("slower", "faster")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10, help="pairs of each kind (default: 10)")
    parser.add_argument("--load", type=int, default=0, help="processes that spin meanwhile (default: 0)")
    pairs, load = vars(parser.parse_args()).values()
    torch.set_num_threads(1)
    step = launch_bound()
    timed(step)  # the first runs of a process are slower
    wait_us = SLOWER * module_us(timed(step))
    with spinning(load):
        parts = [*equal_pairs(step, pairs), planted_table(step, pairs, wait_us)]
    head = f"{WARMUP} warm-up runs and {REPEATS} repeats a side, {pairs} pairs of each, {load} spinning processes."
    text = "\n\n".join(["# Colors of a difference", head, *parts]) + "\n"
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / ("flame_difference_loaded.md" if load else "flame_difference.md")).write_text(text)
    print(text)


def equal_pairs(step: TrainingStep, pairs: int) -> tuple[str, str]:
    """Returns the table of what is colored although nothing differs, and a sentence on single recordings."""
    coloured, frames, single = Counter[str](), Counter[str](), list[int]()
    for _ in range(pairs):
        before, now = timed(step), timed(step)
        for group, (paths, count) in judged(before, now).items():
            coloured[group] += len(paths)
            frames[group] = max(frames[group], count)
        single.append(singly_coloured(before, now))
    rows = [(group, f"{frames[group]:,}", f"{coloured[group]}") for group in GROUPS]
    table = markdown(("equal runs, by grouping", "frames", "colored in all pairs together"), rows)
    none = f"none in {single.count(0)} of {pairs}"
    return table, f"Compared as single recordings, {median(single):g} frames (median; most {max(single)}; {none})."


def planted_table(step: TrainingStep, pairs: int, wait_us: float) -> str:
    """Says in how many pairs the planted module is colored, and what else is in all of them."""
    found, above, beside = Counter[str](), Counter[str](), Counter[str]()
    for before, now in planted_pairs(step, pairs, wait_us):
        for group, (paths, _) in judged(before, now).items():
            planted = [path for path in paths if is_planted(path)]
            holding = [path for path in paths if any(other[: len(path)] == path for other in planted)]
            found[group] += bool(planted)
            above[group] += len(set(holding) - set(planted))
            beside[group] += len(set(paths) - set(holding))
    rows = [(group, f"{found[group]} of {pairs}", f"{above[group]}", f"{beside[group]}") for group in GROUPS]
    return markdown((f"{MODULE} planted 20 % slower", "colored", "frames that hold it", "other frames"), rows)


def judged(before: Trace, now: Trace) -> dict[str, tuple[list[tuple[str, ...]], int]]:
    """Returns per grouping the paths of the frames slower or faster beyond noise, and the number of frames."""
    states = flame_state(now), flame_state(before)
    pair = timed_pair(before, now)
    found = {}
    for group in GROUPS:
        tree = flame_tree(*states, group)
        table = compare_trees(pair, (tree.frame_of[1], tree.frame_of[0]), tree.parent)
        beyond = table.loc[np.abs(table["change_us"]) > table["noise_us"], "frame"]
        found[group] = [path_of(tree.parent, tree.texts, frame) for frame in beyond], len(tree.texts)
    return found


def path_of(parent: np.ndarray, texts: list[str], frame: int) -> tuple[str, ...]:
    return (*(path_of(parent, texts, parent[frame]) if parent[frame] >= 0 else ()), texts[frame])


def is_planted(path: tuple[str, ...]) -> bool:
    """Returns whether a frame is of the module's own forward time: by its path, and as a leaf of a grouping."""
    module = f"Llama.{MODULE}"
    return path[-1] == f"{module} (MLP)" or ("MLP" in path and module in path)


def singly_coloured(before: Trace, now: Trace) -> int:
    """Returns how many frames are colored if the noise is not known."""
    plain = [Trace({"ops": trace.ops}, trace.meta) for trace in (now, before)]
    states = [flame_state(trace) for trace in plain]
    changes = flame_changes(states[0], states[1], difference_state(plain[0], plain[1], states[0], states[1]))
    return int(changes["kind"].isin(COLOURED).sum())


if __name__ == "__main__":
    main()
