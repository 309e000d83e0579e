"""Every planted fault changes what the model returns, each time alike, and lies in modules that are there."""

import pytest
import torch
from torch.export import ExportedProgram

from tests.align_cases.faults import FAULTS, KINDS
from tests.align_cases.ports.port import difference


def modules(side):
    if isinstance(side, ExportedProgram):  # its modules are those of what was exported
        return {name.rpartition(".")[0] for name in side.state_dict}
    return {name for name, _ in side.named_modules()}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_changes_the_output(name):
    pytest.importorskip("transformers")
    fault = FAULTS[name]
    port = fault.build()
    found = difference(port)
    assert not found <= 2 * port.tolerance
    assert difference(fault.build()) == pytest.approx(found, rel=1e-3, nan_ok=True)
    assert fault.modules_left <= modules(port.left)
    assert fault.modules_right <= modules(port.right)


def test_there_are_faults_of_every_kind():
    assert {fault.kind for fault in FAULTS.values()} == KINDS


def test_the_random_state_is_left_alone():
    pytest.importorskip("transformers")
    torch.manual_seed(3)
    expected = torch.rand(1)
    for name in ("rotary_base_of_the_model", "head_has_its_own_weight"):
        torch.manual_seed(3)
        port = FAULTS[name].build()
        assert port.left is not port.right
    torch.manual_seed(3)
    assert torch.equal(torch.rand(1), expected)
