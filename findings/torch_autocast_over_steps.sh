#!/bin/sh
# A training loop inside one torch.autocast block computes every step with the weights of the first one.
# Versions: torch 2.13.0.
# A good guess: one `with torch.autocast(...)` around the loop is the same as one in each step, and an optimizer's update
# of a weight is seen by the next forward pass.
# Seen: autocast keeps the cast of each weight until its block ends and does not ask whether the weight has changed. The loss
# is the same to the bit in all steps, while the weights move; with cache_enabled=False, or a block in each step, it falls.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --no-compile --target "$folder" torch==2.13.0 numpy==2.4.6
PYTHONPATH=$folder python3 - <<'EOF'
from contextlib import nullcontext

import torch


def losses(around, inside):
    torch.manual_seed(0)
    model, x = torch.nn.Linear(8, 1), torch.randn(32, 8)
    before = model.weight.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    told = []
    with around:
        for _ in range(5):
            with inside():
                loss = (model(x).float() - x.sum(1, keepdim=True)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            told.append(loss.item())
    assert not torch.equal(before, model.weight)
    return told


def autocast(**options):
    return torch.autocast("cpu", torch.bfloat16, **options)


kept, fresh = losses(autocast(), nullcontext), losses(nullcontext(), autocast)
print("one block:", kept, "a block a step:", fresh)
assert len(set(kept)) == 1
assert fresh == sorted(fresh, reverse=True) and fresh[-1] < 0.5 * fresh[0]
assert losses(autocast(cache_enabled=False), nullcontext) == fresh
EOF
