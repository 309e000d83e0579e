#!/bin/sh
# JAX on the CPU takes subnormal numbers for 0: x + 0 is not x, and x > 0 is False.
# Versions: jax 0.10.2, jaxlib 0.10.2, numpy 2.4.6.
# A good guess: float32 is IEEE 754 on a CPU, as in numpy and torch; flushing to zero is for GPUs and fast-math flags.
# Seen: an array that holds 1e-39 shows it, but 1e-39 + 0, * 1 and sqrt are 0, and 1e-39 == 0 is True. nextafter(0, 1) still is
# 1e-45, of which sqrt is 0. Second moments of small gradients differ from those of torch, with any tolerance that is relative.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --target "$folder" jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
PYTHONPATH=$folder JAX_PLATFORMS=cpu python3 - <<'EOF'
import jax
import jax.numpy as jnp
import numpy as np

there = np.array([1e-39, 1e-37], np.float32)  # subnormal, and the smallest normal number is 1.2e-38
here = jnp.asarray(there)
flushed = {"+ 0": here + 0, "* 1": here * 1, "sqrt": jnp.sqrt(here), "jit": jax.jit(lambda x: x * 8)(here)}
print("held:", np.asarray(here), {name: np.asarray(value) for name, value in flushed.items()}, "> 0:", here > 0)
assert np.asarray(here).tolist() == there.tolist()
assert all(value[0] == 0 and value[1] > 0 for value in map(np.asarray, flushed.values()))
assert (there + 0 == there).all() and (there > 0).all() and (np.sqrt(there) > 0).all()
assert np.asarray(here > 0).tolist() == [False, True] and np.asarray(here == 0).tolist() == [True, False]
smallest = jax.lax.nextafter(jnp.float32(0), jnp.float32(1))
assert np.asarray(smallest) > 0 and np.asarray(jnp.sqrt(smallest)) == 0
EOF
