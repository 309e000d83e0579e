"""Tests bit-identity of torch's ways to train: autocast, checkpoints, scalers, double backward, closures."""

import copy
from collections import Counter
from contextlib import nullcontext
from functools import partial

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from tests.capture.models import bits, in_any_mode, mlp, record, recorded_ops, seen_ops


def autocast(model, x):
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(x).float().pow(2).mean()
    loss.backward()
    return loss


def checkpointed(model, x, reentrant):
    x.requires_grad_()
    loss = checkpoint(model, x, use_reentrant=reentrant).pow(2).mean()
    loss.backward()
    return loss


def segments(model, x):
    loss = checkpoint_sequential(model, 2, x, use_reentrant=False).pow(2).mean()
    loss.backward()
    return loss


def double_backward(model, x):
    x.requires_grad_()
    (slope,) = torch.autograd.grad(model(x).pow(2).sum(), x, create_graph=True)
    loss = slope.pow(2).sum()
    loss.backward()
    return loss


def clipped(model, x):
    loss = model(x).pow(2).mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    return loss


def scaled(model, x):
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = model(x).pow(2).mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    return loss + scaler.get_scale()


def overflowed(model, x):
    scaler = torch.amp.GradScaler("cpu", init_scale=1e30)
    optimizer = torch.optim.AdamW(model.parameters())
    loss = model(x).pow(2).mean() * 1e30
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return loss + scaler.get_scale()


def lbfgs(model, x):
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

    def closure():
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        return loss

    return optimizer.step(closure)


def optimized(model, x, kind, **options):
    optimizer = kind(model.parameters(), lr=0.01, **options)
    for _ in range(2):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
    return loss


def scheduled(model, x):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3)
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    scheduler.step()
    return loss + scheduler.get_last_lr()[0]


def hooked(model, x):
    model[0].register_forward_hook(lambda module, args, out: out * 2)
    model[3].register_full_backward_hook(lambda module, grad_in, grad_out: (grad_in[0] * 0.5,))
    model[6].weight.register_hook(lambda grad: grad + 1)
    loss = model(x).pow(2).mean()
    loss.backward()
    return loss


def offloaded(model, x):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.double(), lambda t: t.float()):
        loss = model(x).pow(2).mean()
    loss.backward()
    return loss


def functional(model, x):
    parameters = dict(model.named_parameters())
    loss = torch.func.functional_call(model, {k: v * 2 for k, v in parameters.items()}, (x,)).pow(2).mean()
    loss.backward()
    return loss


WAYS = {
    "autocast": autocast,
    "checkpoint reentrant": partial(checkpointed, reentrant=True),
    "checkpoint": partial(checkpointed, reentrant=False),
    "checkpoint_sequential": segments,
    "create_graph": double_backward,
    "clip_grad_norm_": clipped,
    "GradScaler": scaled,
    "GradScaler that skips": overflowed,
    "LBFGS closure": lbfgs,
    "AdamW foreach": partial(optimized, kind=torch.optim.AdamW, foreach=True),
    "AdamW fused": partial(optimized, kind=torch.optim.AdamW, fused=True),
    "AdamW capturable": partial(optimized, kind=torch.optim.AdamW, foreach=False),
    "SGD foreach": partial(optimized, kind=torch.optim.SGD, foreach=True, momentum=0.9),
    "SGD fused": partial(optimized, kind=torch.optim.SGD, fused=True, momentum=0.9),
    "Adafactor": partial(optimized, kind=torch.optim.Adafactor),
    "RMSprop": partial(optimized, kind=torch.optim.RMSprop),
    "scheduler": scheduled,
    "hooks": hooked,
    "saved_tensors_hooks": offloaded,
    "functional_call": functional,
}


def left_by(way, model, options=None):
    """Returns all that one run of a way leaves behind, from a fixed seed; and its trace if options are set."""
    model = copy.deepcopy(model)
    torch.manual_seed(3)
    x, out, trace = torch.randn(5, 6), [], None
    if options is None:
        out.append(way(model, x))
    else:
        trace = record(lambda: out.append(way(model, x)), **options)
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    return bits([*out, x.grad, *grads, *model.parameters(), torch.get_rng_state()]), trace


@pytest.mark.parametrize("options", [{}, {"values": "stats"}], ids=["default", "stats"])
@pytest.mark.parametrize("way", WAYS)
def test_a_way_to_train_computes_the_same_bits(way, options):
    """Defects B1, B2, B7, B8 and B9: nothing of a training step changes because it is watched."""
    model = mlp()
    traced, trace = left_by(WAYS[way], model, options)
    assert traced == left_by(WAYS[way], model)[0]
    assert trace.complete
    assert set(trace.ops["phase"]) >= {"forward", "backward"}


# A checkpoint ends its second run by an exception inside of an op, which has begun by then; its kernel does not run.
STOPPED = {
    "checkpoint": Counter(["aten.addmm.default"]),
    "checkpoint_sequential": Counter(["aten.mul.Tensor"]),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_way_to_train_runs_the_same_ops(way):
    model, x = mlp(), torch.randn(5, 6)
    run = lambda: WAYS[way](copy.deepcopy(model), x.clone())  # noqa: E731
    seen, trace = seen_ops(run), record(run)
    if trace.meta["recorder"] == "observer":
        seen += STOPPED.get(way, Counter())
    assert in_any_mode(recorded_ops(trace)) == in_any_mode(seen)


@pytest.mark.parametrize("grad", [torch.no_grad, torch.inference_mode, nullcontext])
@pytest.mark.parametrize("kind", ["attention", "layer", "encoder"])
def test_fused_inference_paths_are_still_taken(kind, grad):
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    models = {
        "attention": lambda: nn.MultiheadAttention(8, 2, batch_first=True),
        "layer": lambda: layer,
        "encoder": lambda: nn.TransformerEncoder(layer, 2),
    }
    model, x, outs = models[kind]().eval(), torch.randn(2, 5, 8), []

    def run():
        with grad():
            out = model(x, x, x) if kind == "attention" else model(x)
            outs.append(out[0] if isinstance(out, tuple) else out)

    bare = seen_ops(run)
    assert ("aten._transformer_encoder_layer_fwd.default" in bare) == (kind != "attention" and grad is not nullcontext)
    assert in_any_mode(recorded_ops(record(run))) == in_any_mode(bare)
    assert bits(outs[:1]) == bits(outs[1:])
