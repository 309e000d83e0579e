#!/bin/sh
# torch casts what is too large for float8_e4m3fn, Inf included, to 448; ml_dtypes, which JAX and ONNX use, makes NaN of it.
# Versions: torch 2.13.0, ml_dtypes 0.6.0, numpy 2.4.6.
# A good guess: a format without Inf overflows to NaN, and torch and ml_dtypes agree on a cast.
# Seen: torch gives 448 for 500, 1e9 and Inf, so that neither isnan nor isinf of the result tells of an overflow; only NaN
# stays NaN. Of float8_e5m2, which has Inf, both make Inf.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --no-compile --target "$folder" torch==2.13.0 ml_dtypes==0.6.0 numpy==2.4.6
PYTHONPATH=$folder python3 - <<'EOF'
import ml_dtypes
import numpy as np
import torch

values = np.array([440, 500, 1e9, np.inf, np.nan], np.float32)


def both(name):
    there = torch.from_numpy(values).to(getattr(torch, name)).float().numpy()
    with np.errstate(over="ignore", invalid="ignore"):
        here = values.astype(getattr(ml_dtypes, name)).astype(np.float32)
    print(name, "torch:", there, "ml_dtypes:", here)
    return there, here


there, here = both("float8_e4m3fn")
assert there[:4].tolist() == [448] * 4 and np.isnan(there[4])
assert here[0] == 448 and np.isnan(here[1:]).all()
there, here = both("float8_e5m2")
assert np.isinf(there[2:4]).all() and np.array_equal(there, here, equal_nan=True)
EOF
