"""Runs training steps on the CPU and on the simulated device, and collects what they leave, to compare bits."""

import torch
import torch.nn.functional as F

from tests.capture.models import MODELS, SHAPES, raw

OPTIMIZERS = {
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
    "adamw_foreach": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, foreach=True),
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
}


def loss_of(model, name, device, dtype=torch.float32):
    """Returns the loss on a random batch drawn on the CPU."""
    if name in ("rwkv4", "llama"):
        ids = torch.randint(0, 96, (2, 5)).to(device)
        return model(ids[:, :-1], ids[:, 1:])
    return F.cross_entropy(model(torch.randn(*SHAPES[name]).to(device, dtype)), torch.randint(0, 3, (5,)).to(device))


def trained(name, device, dtype=torch.float32, optimizer="adamw", autocast=False):
    """Returns bits of losses, gradients, parameters, buffers, optimizer and random state over three steps."""
    torch.manual_seed(7)
    model = MODELS[name]().to(dtype).to(device)
    updates = OPTIMIZERS[optimizer](model.parameters())
    left = []
    for _ in range(3):
        updates.zero_grad()
        with torch.autocast(device, torch.bfloat16, enabled=autocast):
            loss = loss_of(model, name, device, dtype)
        loss.backward()
        updates.step()
        left += [loss, *(parameter.grad for parameter in model.parameters())]
    left += [*model.parameters(), *model.buffers(), *tensors_of(updates), torch.get_rng_state()]
    return [raw(tensor.detach().cpu()) for tensor in left]


def tensors_of(optimizer):
    return [value for state in optimizer.state.values() for value in state.values() if value is not None]
