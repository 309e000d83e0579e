"""Makes audits of a training step by hand: parameters that are all right but for what a test says, ops, tensors."""

from nbkit.findings.training.facts import Audit
from nbkit.schema import MODULES, OPS, PARAMETERS, TENSORS

GOOD = {
    "model": "Net",
    "kind": "parameter",
    "module": "a",
    "shape": "[4, 4]",
    "numel": 16,
    "dtype": "float32",
    "device": "cpu",
    "requires_grad": True,
    "calls": 1,
    "in_optimizer": 1,
    "optimizer_steps": 1,
    "skipped_steps": 0,
    "learning_rate": 0.1,
    "gradient": "finite",
    "gradient_norm": 1.0,
    "gradient_zero_fraction": 0.0,
    "accumulated": 0,
    "changed_fraction": 1.0,
}


def parameters(*rows):
    return PARAMETERS.frame([{**GOOD, "name": f"{row.get('module', 'a')}.w{n}", **row} for n, row in enumerate(rows)])


def op(op_id, name, phase, step=0, **columns):
    row = {"op_id": op_id, "level": "aten", "op": name, "phase": phase, "step": step, "thread": 0}
    return {**row, "start_us": 0.0, "total_time_us": 1.0, "self_time_us": 1.0, **columns}


def tensor(op_id, role, number, **columns):
    row = {"op_id": op_id, "role": role, "position": 0, "tensor_id": number, "storage_id": number, "numel": 1}
    return {**row, "dtype": "float32", "shape": "[1]", "requires_grad": False, "device": "cpu", **columns}


def audit(*rows, ops=(), **facts):
    backward = [op(0, "aten.mm.default", "backward"), *ops]
    frames = OPS.frame(backward), TENSORS.frame(), MODULES.frame()
    return Audit(parameters(*rows), *frames, texts={}, **{"modes": {}, "steps": 1, **facts})
