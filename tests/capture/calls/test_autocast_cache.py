"""The casts that a block of autocast keeps are told apart whatever defaults are set where nbkit is imported."""

import subprocess
import sys

import pytest

ASKED = """\
import torch
torch.set_default_dtype(torch.float64)
with torch.inference_mode():
    from nbkit.capture.calls.autocast_cache import is_emptied
with torch.autocast("cpu", torch.bfloat16):
    print(is_emptied(), is_emptied())
    torch.clear_autocast_cache()
    print(is_emptied())
"""


@pytest.mark.cold
def test_a_block_that_drops_its_casts_is_seen_under_other_defaults():
    out = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["True", "False", "True"]
