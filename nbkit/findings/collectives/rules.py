"""Runs all rules of why a distributed job hangs over the calls of its ranks."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from nbkit.findings.collectives.dumps import Dumps
from nbkit.findings.finding import findings_frame, rules_in

RULES = rules_in("nbkit.findings.collectives")


def collective_findings(frame: pd.DataFrame, meta: Mapping[str, Any]) -> tuple[pd.DataFrame, list[str]]:
    """Returns what the ranks of a job did not do alike, from the frame `collectives` of their dumps, and notes.

    `meta` has `ranks`, one mapping per dump (rank, is_whole, dumped_ns, unfinished), `groups` with the members that are
    known, and world_size if it is. One dump alone, whose rank meta has, has nothing to be compared with.
    """
    if "rank" in meta:
        return findings_frame([]), []
    job = Dumps(frame, meta)
    if len(job.ranks) + len(job.absent) < 2:
        return findings_frame([]), job.notes
    found = [finding for one in RULES for finding in one(job)]
    return findings_frame(found), job.notes
