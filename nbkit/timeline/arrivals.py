"""Says when each rank came to a collective, and how long it waited there for the last."""

import numpy as np
import pandas as pd


def arrivals(met: pd.DataFrame, clocks: pd.DataFrame) -> pd.DataFrame:
    """Returns `meetings` whose ranks' clocks are known, with arrived_us, late_us and waited_us.

    late_us is how much later than the first rank it came, waited_us how long it was there before the last: of what its
    thread is known to have waited at most that. What the clocks may be off is left out of both.
    """
    of_rank = clocks.set_index("rank")
    offset, error = met["rank"].map(of_rank["offset_us"]), met["rank"].map(of_rank["error_us"])
    rows = met.assign(arrived_us=(met["begin_us"] - offset).to_numpy(float), error_us=error.to_numpy(float))
    rows = rows[np.isfinite(rows["arrived_us"])]
    of_meeting = rows.groupby("meeting")
    rows = rows[of_meeting["rank"].transform("nunique") > 1]
    of_meeting = rows.groupby("meeting")
    unsure = of_meeting["error_us"].transform("max")
    late = (rows["arrived_us"] - of_meeting["arrived_us"].transform("min") - unsure).clip(lower=0.0)
    ahead = (of_meeting["arrived_us"].transform("max") - rows["arrived_us"] - unsure).clip(lower=0.0)
    came: pd.DataFrame = rows.assign(late_us=late, waited_us=np.fmin(ahead, rows["wait_us"].to_numpy(float)))
    return came
