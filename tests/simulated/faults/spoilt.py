"""Runs one op with a fault next to the same op without."""

import torch

from nbkit import Fault


def spoilt(device, fault, compute, *inputs):
    """Returns what `compute` gives on the CPU, and on the device under the fault, which must fire and matter."""
    expected = compute(*[tensor.clone() for tensor in inputs])
    with device.planted(fault) as planted:
        actual = compute(*[tensor.to("sim") for tensor in inputs]).cpu()
    report = planted.report()
    assert report[["fired", "changed", "status"]].to_numpy().tolist() == [[1, 1, "changed"]], report["message"].tolist()
    return expected, actual


def obstacle(device, op, kind, compute, *inputs):
    """Returns why the fault could not befall the op, whose result must be correct to the bit."""
    with device.planted(Fault(op, kind)) as planted:
        actual = compute(*[tensor.to("sim") for tensor in inputs]).cpu()
    assert torch.equal(actual, compute(*inputs))
    assert planted.report()["status"].tolist() == ["cannot apply"]
    return planted.report()["message"].item()
