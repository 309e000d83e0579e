"""JobFacts holds what the rules of ranks ask of a job: its ranks, their times by call, and their collectives."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from nbkit.ops.collectives import NAMESPACES
from nbkit.schema import table
from nbkit.timeline.arrivals import arrivals
from nbkit.timeline.clocks import clock_offsets, meetings

CALL_TIMES = table(
    "call_times",
    "call of a module in a rank, with its backward pass, without what is below it",
    ("rank", "int64", "the rank"),
    ("module", "str", "as in ops"),
    ("module_call", "int64", "as in ops"),
    ("step", "int64", "as in ops, of the forward call"),
    ("self_us", "float64", "self time of its ops on the host, without those that communicate"),
    ("device_us", "float64", "time of the kernels that these launched"),
    ("source", "str", "line of the call of the module; null if unknown"),
)
# What waits for other ranks is the others' time; ranges of frameworks such as FSDP are spent in waiting, too.
_CALL_TIMES = f"""
SELECT rank, module, module_call, min(step) AS step, sum(self_time_us) AS self_us,
  coalesce(sum(self_device_time_us), 0) AS device_us, min(source) FILTER (level = 'module') AS source
FROM ops
WHERE module IS NOT NULL AND module_call IS NOT NULL AND "group" IS NULL
  AND (level IN ('module', 'api', 'aten') OR level = 'range' AND contains(op, 'Backward'))
  AND NOT regexp_matches(op, '^({"|".join(NAMESPACES)})[.:]')
"""


def call_times_query(first: int | None = None) -> str:
    """Returns the SQL of CALL_TIMES over the view `ops`; of the first so many ops of each rank, None for all."""
    part = "" if first is None else f"AND op_id < {first} "
    return f"{_CALL_TIMES}{part}GROUP BY rank, module, module_call"


@dataclass(frozen=True)
class JobFacts:
    """Holds the tables of a job: one row of `ranks` per rank, with rank, host, started_ns and wall_us.

    `times` is CALL_TIMES, `collectives` is COLLECTIVES; `modules` (model, module, type, params) and `parameters`, the
    frame of opaudit, have a column `rank`.
    """

    ranks: pd.DataFrame
    times: pd.DataFrame
    modules: pd.DataFrame
    collectives: pd.DataFrame
    parameters: pd.DataFrame

    @cached_property
    def steps(self) -> int:
        """Returns how many steps a rank recorded, at least 1."""
        return max(int(self.times["step"].nunique()), 1)

    @cached_property
    def work_us(self) -> float:
        """Returns the time that a step of the median rank computes, without communication."""
        of_ranks = self.times.groupby("rank")[["self_us", "device_us"]].sum().max(axis=1)
        return float(of_ranks.median()) / self.steps if len(of_ranks) else 0.0

    @cached_property
    def step_us(self) -> float:
        """Returns the time of a step: the median of the ranks' wall times over the number of steps."""
        return float(self.ranks["wall_us"].median()) / self.steps

    @cached_property
    def meetings(self) -> pd.DataFrame:
        """Returns the collectives that are known of several ranks, with times on the clocks of their hosts."""
        started = self.ranks.set_index("rank")["started_ns"]
        since_us = self.collectives["rank"].map((started - started.min()).astype("float64") / 1e3)
        begin_us = (since_us.astype("float64") + self.collectives["start_us"]).to_numpy("float64", na_value=np.nan)
        return meetings(self.collectives, begin_us)

    @cached_property
    def clocks(self) -> pd.DataFrame:
        """Returns how far the clocks of the ranks are apart."""
        return clock_offsets(self.ranks, self.meetings)

    @cached_property
    def arrivals(self) -> pd.DataFrame:
        """Returns when each rank came to each meeting, and how long it waited for the last."""
        return arrivals(self.meetings, self.clocks)
