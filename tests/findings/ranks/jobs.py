"""Jobs of made-up times, for the rules of ranks."""

import numpy as np
import pandas as pd

from nbkit.findings.ranks.facts import CALL_TIMES, JobFacts
from nbkit.schema import COLLECTIVES, PARAMETERS

NO_PARAMETERS = PARAMETERS.frame([]).assign(rank=0)
USUAL_US = {"embed": 400.0, "layers.0": 900.0, "layers.1": 900.0, "head": 600.0}


def job_of(slow=None, ranks=range(4), calls=10, noise=0.1, pauses=0.1, usual=USUAL_US, seed=0, rows=()):
    """A job whose calls vary by `noise` and have pauses of 5 ms in a share of the calls; `slow` adds to some.

    `slow` gives microseconds by rank, module and call. `rows` are its collectives.
    """
    drawn = np.random.default_rng(seed)
    times = []
    for rank in ranks:
        for module, mean in (usual.get(rank, {}) if rank in usual else usual).items():
            for call in range(calls):
                us = mean * (1 + noise * drawn.standard_normal()) + 5000 * (drawn.random() < pauses)
                us += slow(rank, module, call) if slow else 0.0
                row = {"rank": rank, "module": module, "module_call": call, "step": call, "self_us": us}
                times.append({**row, "device_us": 0.0, "source": f"{module}.py:1"})
    frame = CALL_TIMES.frame(times)
    modules = frame[["rank", "module"]].drop_duplicates().assign(model="M", params=100)
    modules["type"] = modules["module"].str.partition(".")[0]
    of_rank = {"rank": [*ranks], "host": "a", "started_ns": 0, "wall_us": calls * 10_000.0}
    return JobFacts(pd.DataFrame(of_rank), frame, modules, COLLECTIVES.frame(list(rows)), NO_PARAMETERS)
