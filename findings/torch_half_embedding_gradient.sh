#!/bin/sh
# The gradient of a frequent token stalls at 256 in a bfloat16 embedding on the CPU; other sums of the same numbers do not.
# Versions: torch 2.13.0.
# A good guess: sums of half tensors are kept in float32 everywhere, as in sum, matmul and the gradient of expand.
# Seen: 5,000 gradients of 1 for one row give 256 in embedding's backward pass, in that of indexing, and in index_add_ of a
# vector: they add one by one in bfloat16, where 256 + 1 is 256 (float16: 2,048). The gradient of index_select of rows, which
# computes what indexing computes, scatter_add_, sum and the gradient of expand give 4,992, which is 5,000 in bfloat16.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --no-compile --target "$folder" torch==2.13.0 numpy==2.4.6
PYTHONPATH=$folder python3 - <<'EOF'
import torch

COUNT = 5000


def sums(dtype):
    ones, rows = torch.ones(COUNT, dtype=dtype), torch.zeros(COUNT, dtype=torch.long)

    def gradient(function):
        weight = torch.zeros(1, 1, dtype=dtype, requires_grad=True)
        function(weight).backward(ones[:, None])
        return weight.grad.item()

    one_by_one = {
        "embedding": gradient(lambda weight: torch.nn.functional.embedding(rows, weight)),
        "indexing": gradient(lambda weight: weight[rows]),
        "index_add_": torch.zeros(1, dtype=dtype).index_add_(0, rows, ones).item(),
    }
    wide = {
        "index_select": gradient(lambda weight: weight.index_select(0, rows)),
        "expand": gradient(lambda weight: weight.expand(COUNT, 1)),
        "scatter_add_": torch.zeros(1, dtype=dtype).scatter_add_(0, rows, ones).item(),
        "sum": ones.sum().item(),
    }
    print(dtype, one_by_one, wide)
    return set(one_by_one.values()), set(wide.values())


assert sums(torch.bfloat16) == ({256}, {4992})
assert sums(torch.float16) == ({2048}, {5000})
EOF
