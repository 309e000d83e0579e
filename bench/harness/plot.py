"""Draws the comparison: how many times longer each recorder takes than the bare step."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from bench.harness.measure import Measurements
from bench.harness.peers import Peer
from bench.harness.ratios import compare, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PARTS = {"to result": ("total", "#9bbcd8"), "the step itself": ("step", "#1f5a8a")}
BAR = 0.38


def write_plot(measured: Mapping[str, Measurements], peers: Sequence[Peer], path: Path) -> None:
    """Draws a panel per step with a pair of bars per peer, as a PNG file."""
    from matplotlib.figure import Figure

    recorders = [peer for peer in peers if peer.name != peer.base]
    figure = Figure(figsize=(13, 4), layout="constrained")
    panels = figure.subplots(1, len(measured), sharey=True)
    for axes, (name, part) in zip(panels, measured.items(), strict=True):
        draw(axes, part, recorders)
        axes.set_title(f"{name} training step")
    panels[0].legend(loc="upper right", reverse=True)
    figure.savefig(path, dpi=120)


def draw(axes: "Axes", measured: Measurements, peers: Sequence[Peer]) -> None:
    """Draws wall time as a multiple of the bare run, on a log axis; a peer without figures has a word instead."""
    step = attrgetter("step")
    absent = {peer.name: " failed" if peer.name in measured.failures else " not in the rounds" for peer in peers}
    for offset, (label, (part, colour)) in enumerate(PARTS.items()):
        for place, peer in enumerate(peers):
            found = compare(measured, peer.name, peer.base, (attrgetter(part), step))
            at, text = (1.0, absent[peer.name]) if found is None else (found.wall_us, f" {number(found.wall_us)} x")
            height = len(peers) - place + (offset - 0.5) * BAR
            axes.barh(height, at - 1, BAR, left=1, color=colour, label=label if place == 0 else None)
            axes.text(max(at, 1), height, text, va="center", fontsize=8)
    axes.set_xscale("log", subs=[2, 5])
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("{x:g}")
    axes.set_yticks(range(len(peers), 0, -1), [peer.name for peer in peers])
    axes.set_xlabel("times the bare run (wall time, median)")
    axes.margins(x=0.15)
    axes.spines[["top", "right"]].set_visible(False)
