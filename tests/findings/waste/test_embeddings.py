"""Gradients of embeddings of which few rows are not 0."""

import torch
import torch.nn.functional as F
from torch import nn

import nbkit


def found(rows, *, is_tied=False, looked_up=16, **options):
    table, head = nn.Embedding(rows, 8, **options), nn.Linear(8, 2)
    kind = torch.optim.SGD if options else torch.optim.Adam
    optimizer = kind([*table.parameters(), *head.parameters()], 1e-3)
    with nbkit.opaudit() as trace:
        for _ in range(2):
            features = table(torch.randint(0, rows, (looked_up,)))
            loss = F.cross_entropy(head(features), torch.arange(looked_up) % 2)
            if is_tied:
                loss = loss + (features @ table.weight.T).logsumexp(-1).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    return trace.findings[trace.findings["rule"] == "zero_rows"]


def test_a_gradient_of_zeros_but_for_a_few_rows_is_a_hint():
    (finding,) = found(100_000).itertuples()
    assert (finding.severity, finding.parameter, finding.effect_bytes) == ("hint", "weight", 3_200_000)
    assert finding.message == (
        "the gradient of weight has 3.05 MiB, and at most 16 of its 100,000 rows are not 0; the optimizer reads and "
        "writes all of them"
    )


def test_small_tables_many_lookups_tied_tables_and_sparse_gradients_are_right():
    assert not len(found(1_000, looked_up=1))
    assert not len(found(40_000, looked_up=64))
    assert not len(found(40_000, is_tied=True))
    assert not len(found(40_000, sparse=True))
