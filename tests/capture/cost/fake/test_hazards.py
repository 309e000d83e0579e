"""Nothing that users can do with opcost ends the process: what torch would end it with is an error, or no matter."""

import subprocess
import textwrap

import pytest
import torch

from tests.processes import PYTHON

HAZARDS = {
    "a recording filter that raises on every op": """
        class Broken:
            def __str__(self): raise ValueError("broken")
        def hook(*args): raise ValueError("broken")
        model.register_forward_hook(hook)
        with nbkit.opcost(): model(x).sum().backward()
    """,
    "a shape rule that raises": """
        library = torch.library.Library("hazard", "DEF")
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CPU")
        @nbkit.register_shape_formula("hazard.twice")
        def twice(x): raise ValueError("broken")
        with nbkit.opcost(): torch.ops.hazard.twice(x)
    """,
    "a FLOP rule that raises": """
        nbkit.register_flop_formula("aten.addmm")(lambda *args: 1 / 0)
        trace = nbkit.opcost().run(lambda: model(x).sum().backward())
        assert trace.costs["flops"].isna().any()
    """,
    "an accelerator that is not there": """
        with nbkit.opcost(): torch.empty(2, device="cuda", requires_grad=True).sum().backward()
    """,
    "a model moved to one": """
        with nbkit.opcost(): model.to("cuda")(x.to("cuda")).sum().backward()
    """,
    "factories under torch.device": """
        with nbkit.opcost(), torch.device("cuda"): nn.Linear(2, 2)(torch.ones(1, 2)).sum().backward()
    """,
    "a hook of a gradient that raises": """
        x.requires_grad_().register_hook(lambda gradient: 1 / 0)
        with nbkit.opcost(): model(x).sum().backward()
    """,
    "a function whose backward raises": """
        class Bad(torch.autograd.Function):
            @staticmethod
            def forward(context, x): return x * 2
            @staticmethod
            def backward(context, gradient): raise ValueError("broken")
        with nbkit.opcost(): Bad.apply(model(x)).sum().backward()
    """,
    "a pack hook that raises": """
        def pack(tensor): raise ValueError("broken")
        with nbkit.opcost(), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            model(x).relu().sum().backward()
    """,
    "an interrupt in the backward pass": """
        def interrupt(gradient): raise KeyboardInterrupt
        x.requires_grad_().register_hook(interrupt)
        with nbkit.opcost(): model(x).sum().backward()
    """,
    "values asked for in the backward pass": """
        x.requires_grad_().register_hook(lambda gradient: gradient if gradient.sum() > 0 else None)
        with nbkit.opcost(values="bound"): model(x).sum().backward()
    """,
    "values computed in the backward pass": """
        x.requires_grad_().register_hook(lambda gradient: gradient if gradient.sum() > 0 else None)
        with nbkit.opcost(): model(x).sum().backward()
    """,
    "a dispatch mode of the user's that raises": """
        from torch.utils._python_dispatch import TorchDispatchMode
        class Raising(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None): raise ValueError("broken")
        with nbkit.opcost(), Raising(): model(x).sum().backward()
    """,
    "another recorder inside, and one outside": """
        with nbkit.optrace(), nbkit.opcost(), nbkit.optime(): model(x).sum().backward()
    """,
    "a model of torch.compile": """
        with nbkit.opcost(): torch.compile(model)(x).sum().backward()
    """,
    "torch.func.grad": """
        with nbkit.opcost(): torch.func.grad(lambda x: model(x).sum())(x)
    """,
}
PROLOGUE = """
import torch
from torch import nn
import nbkit
model, x = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 4)), torch.ones(2, 4)
"""


@pytest.mark.skipif(torch.cuda.is_available(), reason="an accelerator is there")
def test_hazards_end_in_an_error_or_in_nothing():
    """One process forks a child for each, so that torch is imported once."""
    script = PROLOGUE + textwrap.dedent(
        f"""
        import os, sys, traceback
        nbkit.opcost().run(lambda: model(x))
        for name, text in {[(name, textwrap.dedent(text)) for name, text in HAZARDS.items()]!r}:
            child = os.fork()
            if not child:
                try:
                    exec(text, globals())
                    status = 0
                except BaseException as error:
                    status = 1
                    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None or "Raising" in text
                    print(name, "|", type(error).__name__, "|", str(error).partition(chr(10))[0], flush=True)
                os._exit(status)
            print(name, "=", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        """
    )
    done = subprocess.run([*PYTHON, "-c", script], capture_output=True, text=True, timeout=300)
    statuses = dict(line.rsplit(" = ", 1) for line in done.stdout.splitlines() if " = " in line)
    assert statuses.keys() == HAZARDS.keys(), done.stderr
    assert {name: status for name, status in statuses.items() if status not in ("0", "1")} == {}
    errors = dict(line.split(" | ", 1) for line in done.stdout.splitlines() if " | " in line)
    assert "aten._local_scalar_dense needs values" in errors["values asked for in the backward pass"]
    assert "KeyboardInterrupt" in errors["an interrupt in the backward pass"]
    assert (
        not {
            "a FLOP rule that raises",
            "an accelerator that is not there",
            "a model moved to one",
            "factories under torch.device",
            "a model of torch.compile",
            "torch.func.grad",
            "values computed in the backward pass",
        }
        & errors.keys()
    )
