"""Timing of peers side by side: every round runs each of them once, on both clocks."""

import gc
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter_ns, thread_time_ns

from bench.harness.peers import Peer
from bench.harness.steps import TrainingStep
from nbkit.capture.profiler.kineto import muted_stderr
from nbkit.trace.trace import Trace


@dataclass(frozen=True)
class Reading:
    """A span, or a moment, on two clocks: wall time, and CPU time of the thread, which a busy machine disturbs less."""

    wall_us: float
    cpu_us: float

    def __add__(self, other: "Reading") -> "Reading":
        return Reading(self.wall_us + other.wall_us, self.cpu_us + other.cpu_us)

    def since(self, start: "Reading") -> "Reading":
        return Reading(self.wall_us - start.wall_us, self.cpu_us - start.cpu_us)


@dataclass(frozen=True)
class Sample:
    """One measured run of a peer: entering it, the step under it, and from there until its result is at hand."""

    enter: Reading
    step: Reading
    finish: Reading

    @property
    def total(self) -> Reading:
        return self.enter + self.step + self.finish


@dataclass
class Measurements:
    """What was measured on one step: samples of each peer, one per round, and why a peer has none."""

    samples: dict[str, list[Sample]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


def now() -> Reading:
    return Reading(perf_counter_ns() / 1e3, thread_time_ns() / 1e3)


def measure(step: TrainingStep, peers: Sequence[Peer], rounds: int) -> Measurements:
    """Returns samples of all peers, interleaved, each round in another order, after one round that does not count."""
    measured = Measurements()
    for number in range(-1, rounds):
        start = number % len(peers)
        for peer in (*peers[start:], *peers[:start]):
            if peer.name in measured.failures:
                continue
            try:
                sample = run_once(peer, step)
            except Exception as error:  # whatever stops a peer is listed as its result
                measured.failures[peer.name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
                measured.samples.pop(peer.name, None)
            else:
                if number >= 0:
                    measured.samples.setdefault(peer.name, []).append(sample)
    return measured


def run_once(peer: Peer, step: TrainingStep) -> Sample:
    """Returns one run of the step under a peer, right after a bare one that brings the step back into the caches."""
    gc.collect()
    with muted_stderr([]):
        peer.prepare()
        try:
            step.run()
            return timed_run(peer, step)
        finally:
            peer.restore()


def timed_run(peer: Peer, step: TrainingStep) -> Sample:
    start = now()
    with peer.open() as held:
        entered = now()
        result = peer.run(step)
        ran = now()
    kept = peer.finish(held, result)
    end = now()
    del kept  # giving the result back does not count
    return Sample(entered.since(start), ran.since(entered), end.since(ran))


def saving(trace: Trace, rounds: int) -> tuple[Reading, int]:
    """Returns median time of saving a trace into a new folder, and the bytes it takes on disk."""
    spans = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(-1, rounds):
            start = now()
            path = trace.save(Path(folder) / str(number))
            if number >= 0:
                spans.append(now().since(start))
        size_bytes = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return Reading(median(span.wall_us for span in spans), median(span.cpu_us for span in spans)), size_bytes
