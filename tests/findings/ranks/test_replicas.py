"""Replicas that part are told, by the numbers that opaudit has of each rank's parameters."""

from dataclasses import replace

import pandas as pd
import pytest

from nbkit.findings.ranks.replicas import replicas_differ
from nbkit.findings.ranks.rules import rank_findings
from nbkit.schema import PARAMETERS
from tests.findings.ranks.jobs import job_of


def replicas(norm=lambda rank, name: 0.5, change=lambda rank, name: 0.01, wrapper="DistributedDataParallel", **fields):
    rows = [
        {
            "model": "M",
            "name": name,
            "kind": "parameter",
            "module": "",
            "shape": "[2]",
            "numel": 2,
            "dtype": "float32",
            "device": "cpu",
            "requires_grad": True,
            "optimizer_steps": 1,
            "gradient_norm": norm(rank, name),
            "update_fraction": change(rank, name),
            **fields,
        }
        for rank in range(4)
        for name in ("a.weight", "a.bias", "b.weight")
    ]
    frame = PARAMETERS.frame(rows).assign(rank=[rank for rank in range(4) for _ in range(3)])
    roots = pd.DataFrame({"rank": range(4), "model": "M", "module": "", "type": wrapper, "params": 6})
    return replace(job_of(), modules=roots, parameters=frame)


def test_gradients_that_nothing_averaged_are_told_once():
    (finding,) = replicas_differ(replicas(norm=lambda rank, name: 0.5 + rank, change=lambda rank, name: rank))
    assert finding.count == 3 and finding.message.startswith("3 gradients differ between the ranks")


def test_a_parameter_with_other_values_in_one_rank_is_named_with_it():
    (finding,) = replicas_differ(replicas(change=lambda rank, name: 0.01 + (rank == 2 and name == "a.bias") * 1e-5))
    assert (finding.parameter, finding.evidence["ranks"], finding.count) == ("a.bias", [2], 1)
    assert "in rank 2: the gradients are the same" in finding.message


def test_of_two_ranks_none_is_called_the_other():
    job = replicas(change=lambda rank, name: 0.01 + rank * (name == "a.bias"))
    two = replace(job, parameters=job.parameters[job.parameters["rank"] < 2])
    (finding,) = replicas_differ(two)
    assert finding.evidence["ranks"] == [0, 1] and "in ranks 0, 1" in finding.message


@pytest.mark.parametrize(
    "job",
    [
        replicas(),
        replicas(norm=lambda rank, name: 0.5 + 1e-8 * rank, change=lambda rank, name: 0.01 + 1e-9 * rank),
        replicas(norm=lambda rank, name: float("nan"), change=lambda rank, name: float("nan")),
        replicas(norm=lambda rank, name: rank, optimizer_steps=0),
        # Shards of one tensor have norms of their own.
        replicas(norm=lambda rank, name: rank, wrapper="FSDPModule"),
    ],
    ids=["alike", "rounded otherwise", "unknown", "no step", "no replicas"],
)
def test_others_are_no_finding(job):
    assert replicas_differ(job) == []


def test_all_rules_run_on_a_job_and_on_one_rank():
    assert set(rank_findings(replicas(norm=lambda rank, name: rank))["rule"]) == {"replicas_differ"}
    assert len(rank_findings(job_of(ranks=range(1)))) == 0
