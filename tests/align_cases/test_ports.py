"""Both sides of every pair compute the same, so that a divergence between them is none."""

import pytest
import torch

from tests.align_cases.ports import PORTS
from tests.align_cases.ports.port import difference, output


@pytest.mark.parametrize("name", PORTS)
def test_both_sides_agree(name):
    pytest.importorskip("transformers")
    port = PORTS[name]()
    assert port.name == name
    assert difference(port) < port.tolerance


@pytest.mark.parametrize("name", ["llama_plain", "decode_static"])
def test_a_pair_is_built_afresh_with_the_same_values(name):
    pytest.importorskip("transformers")
    first, second = PORTS[name](), PORTS[name]()
    assert first.right is not second.right
    assert torch.equal(output(first.right, first), output(second.right, second))
