"""Runs one planted fault under opdiff: what the device says of it, what opdiff finds, and whether the two agree."""

import json
from dataclasses import dataclass
from math import prod

import pandas as pd

import nbkit
from bench.planted.steps import Step
from nbkit.numerics.noise_ratio import HARMLESS
from nbkit.simulated.faults.kinds import draws

# So many times what rounding allows a fault must move a result to count as detectable. Right kernels move it too: those
# of these steps up to 2.8 times in bfloat16 and float16, where some round more than once.
BOUND = 8.0
# Of random numbers nothing is wrong but how they are drawn: that shows, whatever the fault's size, in so many.
RANDOM_KINDS = frozenset(kind.name for kind in draws.KINDS)
ENOUGH_DRAWS = 1000
# What is right for inputs of fewer bits counts as right: a planted fault must not be excused by it.
# In the order of the tables; see Outcome.kind.
KINDS = ("detectable", "within the margin", "within rounding", "random")


@dataclass(frozen=True)
class Outcome:
    """Holds what a subcommand prints, null for nothing, its exit status, and the traces that may hold findings."""

    fault: nbkit.Fault
    phase: str
    rounding_ratio: float  # the device's: how far the fault moved the result beside rounding; NaN of random ops
    noise_ratio: float  # opdiff's, of the op with the fault; NaN where no row has one
    found: bool  # the op with the fault is called wrong
    others: tuple[str, ...]  # ops called wrong that had no fault
    numel: int = 0  # of the first result

    @property
    def kind(self) -> str:
        """Returns what the device's figure makes of the fault; opdiff's verdict has no part in it."""
        if pd.isna(self.rounding_ratio):
            is_plain = self.fault.kind in RANDOM_KINDS and self.numel >= ENOUGH_DRAWS
            return "detectable" if is_plain else "random"
        if self.rounding_ratio > BOUND:
            return "detectable"
        return "within the margin" if self.rounding_ratio > 1 else "within rounding"

    @property
    def localised(self) -> bool:
        """Returns whether the op with the fault, and no other, is called wrong."""
        return self.found and not self.others

    @property
    def is_wrong(self) -> bool:
        """Returns whether opdiff is wrong about it: missed though detectable, or another op blamed."""
        return bool(self.others) or (self.kind == "detectable" and not self.found)


def outcome_of(device: nbkit.SimulatedDevice, step: Step, fault: nbkit.Fault) -> Outcome | None:
    """Runs the step with this fault; None if the device reports that it changed nothing."""
    with device.planted(fault) as plan, nbkit.opdiff() as trace:
        step.run()
        report = plan.report().iloc[0]  # before opdiff runs kept calls again
    if report["status"] != "changed":
        return None
    on_device = (trace.ops["level"] == "aten") & (trace.ops["device"] == str(device.torch_device))
    calls = trace.ops[on_device & (trace.ops["op"] == fault.op)]
    if len(calls) != report["calls"]:
        raise RuntimeError(f"{fault.op}: {report['calls']} calls on the device, {len(calls)} in the trace.")
    call = calls.iloc[(fault.nth_call or 1) - 1]
    wrong = mismatches(trace)
    is_own = wrong["op_id"] == call["op_id"]
    rows = trace.diffs[trace.diffs["op_id"] == call["op_id"]]
    numel = prod(json.loads(rows["shape"].iloc[0])) if len(rows) and rows["shape"].notna().iloc[0] else 0
    others = tuple(sorted(set(wrong.loc[~is_own, "op"])))
    return Outcome(
        fault, call["phase"], report["rounding_ratio"], rows["noise_ratio"].max(), bool(is_own.any()), others, numel
    )


def mismatches(trace: nbkit.Trace) -> pd.DataFrame:
    """Returns rows of `diffs` that say that an op is wrong."""
    return trace.diffs[~trace.diffs["status"].isin(HARMLESS)]
