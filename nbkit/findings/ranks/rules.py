"""Runs all rules of what the ranks of a job do to each other."""

import pandas as pd

from nbkit.findings.finding import findings_frame, rules_in
from nbkit.findings.ranks.facts import JobFacts

RULES = rules_in("nbkit.findings.ranks")


def rank_findings(job: JobFacts) -> pd.DataFrame:
    """Returns what the ranks of a job show together: who is slow, who waits for whom, which replicas differ."""
    rules = RULES if len(job.ranks) > 1 else []
    return findings_frame(finding for rule in rules for finding in rule(job))
