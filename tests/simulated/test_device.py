"""Tests making the simulated device: once per process, at first use, with one sentence where torch cannot have it."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import nbkit
from tests.processes import PYTHON

ROOT = Path(__file__).parents[2]


def run(script, python=PYTHON):
    """Returns what a script prints in a process of its own, as the device is there for good; fails if it fails."""
    command = [*python, "-c", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


REFUSED = "try: nbkit.SimulatedDevice(name={name!r})\nexcept nbkit.OptionError as error: print(error)"


@pytest.mark.cold
def test_importing_nbkit_registers_nothing():
    script = (
        "import sys, torch, nbkit; print(torch._C._get_privateuse1_backend_name(), 'nbkit.simulated' in sys.modules)"
    )
    assert run(script, [sys.executable]) == "privateuseone False"


def test_a_slot_taken_by_another_backend_is_named():
    script = "import torch, nbkit; torch.utils.rename_privateuse1_backend('npu')\n" + REFUSED.format(name="sim")
    expected = (
        "torch has one slot for such backends (PrivateUse1), and another backend has it as 'npu'; start a process"
    )
    assert expected in run(script)


def test_a_torch_without_python_backends_is_named():
    script = "import nbkit; from torch.utils import backend_registration as there\n"
    script += "del there._setup_privateuseone_for_python_backend\n" + REFUSED.format(name="sim")
    expected = "A simulated device needs torch's experimental backends in Python, which torch"
    assert run(script).startswith(expected)


def test_names_that_cannot_be_one_are_refused_and_leave_the_slot_free():
    tries = [REFUSED.format(name=name) for name in ("Sim", "a b", "cuda")]
    script = "\n".join(["import nbkit", *tries, "print(nbkit.SimulatedDevice(name='mine').torch_device)"])
    capital, blank, taken, made = run(script).splitlines()
    assert capital == "name must be a name of a device type, got 'Sim'; take lower-case letters, such as 'sim'."
    assert blank == "name must be a name of a device type, got 'a b'; take lower-case letters, such as 'sim'."
    assert taken == "name='cuda' is a name that torch uses already; take another one, such as 'sim'."
    assert made == "mine:0"


def test_a_second_name_is_refused(device):
    with pytest.raises(nbkit.OptionError, match="an earlier SimulatedDevice has it as 'sim'; use name='sim'"):
        nbkit.SimulatedDevice(name="other")


@pytest.mark.cold
def test_a_process_that_ends_right_after_a_backward_pass_ends_well():
    script = "import torch, nbkit; nbkit.SimulatedDevice(); x = torch.ones(3, device='sim', requires_grad=True)\n"
    assert run(script + "(x * x).sum().backward()", [sys.executable]) == ""


@pytest.mark.parametrize("before", ["", "torch.ones(3, requires_grad=True).sum().backward()\n"])
def test_backward_works_in_every_thread_whether_or_not_autograd_ran_before(before):
    script = "import threading, torch, nbkit\n" + before + "nbkit.SimulatedDevice()\n"
    script += "def work():\n    x = torch.ones(3, device='sim', requires_grad=True)\n    (x * x).sum().backward()\n"
    script += "    print(x.grad.tolist())\n"
    script += "work()\nthread = threading.Thread(target=work); thread.start(); thread.join()"
    assert run(script).splitlines() == ["[2.0, 2.0, 2.0]"] * 2


def test_the_device_is_torchs_accelerator(device):
    assert device.torch_device == torch.device("sim", 0)
    assert torch.accelerator.current_accelerator() == torch.device("sim")
    assert (torch.sim.device_count(), torch.sim.current_device(), torch.sim.is_available()) == (1, 0, True)
    torch.sim.synchronize()
    with torch.sim.device(0):
        assert torch.ones(2, device="sim").device == device.torch_device


def test_the_device_is_seeded_with_the_cpu(device):
    torch.sim.manual_seed(5)
    drawn = torch.randn(3, device="sim")
    torch.sim.set_rng_state(torch.Generator().manual_seed(5).get_state())
    assert torch.equal(torch.randn(3, device="sim"), drawn)


def test_making_it_again_replaces_its_faults(device):
    faulty = nbkit.SimulatedDevice([nbkit.Fault("add", size=1.0)])
    x = torch.ones(2, device="sim")
    assert (x + 1).tolist() == [4.0, 4.0]
    assert repr(faulty).startswith("SimulatedDevice([Fault(op='add', kind='relative_error', size=1.0")
    nbkit.SimulatedDevice()
    assert (x + 1).tolist() == [2.0, 2.0]
    assert faulty.report()["fired"].tolist() == [1]


def test_faults_of_a_block_end_with_it_also_after_an_error(device):
    x = torch.ones(2, device="sim")
    with pytest.raises(KeyError), device.planted(nbkit.Fault("mul", size=1.0)) as planted:
        assert (x * 3).tolist() == [6.0, 6.0]
        raise KeyError
    assert (x * 3).tolist() == [3.0, 3.0]
    assert planted.report()["fired"].tolist() == [1]
    assert device.report().empty


def test_a_fault_of_a_block_comes_before_one_of_the_device():
    device, x = nbkit.SimulatedDevice([nbkit.Fault("mul", size=1.0)]), torch.ones(2, device="sim")
    with device.planted(nbkit.Fault("mul", size=2.0)), device.planted(nbkit.Fault("add", size=3.0)):
        assert (x * 1).tolist() == [3.0, 3.0]
        assert (x + 1).tolist() == [8.0, 8.0]
    assert (x * 1).tolist() == [2.0, 2.0]
    assert device.report()[["calls", "fired"]].to_numpy().tolist() == [[2, 1]]


@pytest.mark.parametrize("faults", [nbkit.Fault("mm"), "mm", ["mm"], 3])
def test_what_is_no_list_of_faults_is_refused(device, faults):
    with pytest.raises(nbkit.OptionError, match=r"is no list of faults; give such as \[nbkit\.Fault\('aten.mm'\)\]"):
        nbkit.SimulatedDevice(faults)
    assert device.report().empty
