#!/bin/sh
# Under FakeTensorMode the second of two equal select_scatter calls has another storage and offset than the first, and neither is real.
# Versions: torch 2.13.0.
# A good guess: fake results have the layout that real ones have, and a call that is repeated gives the same one again, cached or not.
# Seen: select_scatter and slice_scatter copy the whole memory of their first input. Of rows 2 to 4 of 8 rows of 4 floats (128 bytes) the real result
# has offset 8 in 128 bytes; the first fake one has offset 8 in 80 bytes, and each later one, which comes from the mode's cache, offset 0 in 48 bytes.
# Who adds up fake storages for the memory of a step gets less from the second layer on.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --no-compile --target "$folder" torch==2.13.0 numpy==2.4.6
PYTHONPATH=$folder python3 - <<'EOF'
from contextlib import nullcontext

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

aten = torch.ops.aten


def layouts(mode, call):
    with mode, torch.no_grad():
        rows = torch.empty(8, 4)[2:5]
        results = [call(rows) for _ in range(3)]
        return [(one.storage_offset(), one.untyped_storage().nbytes()) for one in results]


for name, call in (("select_scatter", lambda rows: aten.select_scatter.default(rows, rows[0], 0, 1)),
                   ("slice_scatter", lambda rows: aten.slice_scatter.default(rows, rows[:1], 0, 1, 2))):
    real, fake = layouts(nullcontext(), call), layouts(FakeTensorMode(), call)
    print(f"{name}: (offset, bytes) real {real}, fake {fake}", flush=True)
    assert real == [(8, 128)] * 3
    assert fake == [(8, 80), (0, 48), (0, 48)]
EOF
