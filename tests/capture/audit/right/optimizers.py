"""Defines right steps that treat gradients and optimizers in unusual ways."""

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture.audit.right.shared import Net, Steps, batch, case, mlp, trains


@case
def ema_copy() -> Steps:
    model = Net()
    average = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(_: int) -> None:
        x = batch()
        with torch.no_grad():
            target = average(x)
        optimizer.zero_grad()
        F.mse_loss(model(x), target + 1).backward()
        optimizer.step()
        with torch.no_grad():
            for mean, parameter in zip(average.parameters(), model.parameters(), strict=True):
                mean.lerp_(parameter, 0.01)

    return step


@case
def gan() -> Steps:
    generator, critic = mlp(8, 8, 8), mlp(8, 8, 1)
    for_generator = torch.optim.Adam(generator.parameters(), 1e-3)
    for_critic = torch.optim.Adam(critic.parameters(), 1e-3)

    def step(_: int) -> None:
        made = generator(batch())
        for_critic.zero_grad()
        (F.softplus(critic(made.detach())) + F.softplus(-critic(batch()))).mean().backward()
        for_critic.step()
        for_generator.zero_grad()
        F.softplus(-critic(made)).mean().backward()
        for_generator.step()

    return step


@case
def gan_generator_only() -> Steps:
    """The critic's optimizer does not step in the recording."""
    generator, critic = mlp(8, 8, 8), mlp(8, 8, 1)
    for_generator = torch.optim.Adam(generator.parameters(), 1e-3)
    for_critic = torch.optim.Adam(critic.parameters(), 1e-3)

    def step(_: int) -> object:
        for_generator.zero_grad()
        F.softplus(-critic(generator(batch()))).mean().backward()
        for_generator.step()
        return for_critic

    return step


@case
def gradient_accumulation() -> Steps:
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters())

    def step(_: int) -> None:
        for _ in range(3):
            (model(batch()).square().mean() / 3).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


@case
def gradient_accumulation_over_calls() -> Steps:
    """Every second call steps; gradients are set to zero, not to none."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(i: int) -> None:
        (model(batch()).square().mean() / 2).backward()
        if i % 2:
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)

    return step


@case
def zeroed_by_hand() -> Steps:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(_: int) -> None:
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.grad.detach_().zero_()
        model(batch()).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()

    return step


@case
def scaled() -> Steps:
    """The scale is too large at first: one step is skipped."""
    model = Net()
    optimizer, scaler = torch.optim.AdamW(model.parameters()), torch.amp.GradScaler("cpu", init_scale=2.0**17)

    def step(i: int) -> None:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = model(batch()).float().square().mean()
        scaler.scale(loss * (1e4 if i == 0 else 1)).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

    return step


@case
def optimised_input() -> Steps:
    """The optimizer moves an image; the network that judges it gets gradients and stays."""
    model, image = Net(), nn.Parameter(batch())
    optimizer = torch.optim.Adam([image], 0.1)

    def step(_: int) -> None:
        optimizer.zero_grad()
        model(image).square().mean().backward()
        optimizer.step()

    return step


@case
def new_head() -> Steps:
    """Only the head is given to the optimizer, and the rest was not frozen."""
    model = Net()
    return trains(model, torch.optim.AdamW(model.head.parameters()))


@case
def warm_up() -> Steps:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(i, 10) / 10)
    inner = trains(model, optimizer)

    def step(i: int) -> None:
        inner(i)
        schedule.step()

    return step


@case
def bfloat16_weights() -> Steps:
    model = Net().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def step(_: int) -> None:
        optimizer.zero_grad()
        model(batch().bfloat16()).square().mean().backward()
        optimizer.step()

    return step


@case
def master_weights() -> Steps:
    """The optimizer holds copies in float32, which are written back."""
    model = Net().bfloat16()
    masters = [parameter.detach().float().requires_grad_() for parameter in model.parameters()]
    optimizer = torch.optim.SGD(masters, 0.1)

    def step(_: int) -> None:
        model.zero_grad()
        model(batch().bfloat16()).square().mean().backward()
        for master, parameter in zip(masters, model.parameters(), strict=True):
            master.grad = parameter.grad.float()
        optimizer.step()
        with torch.no_grad():
            for master, parameter in zip(masters, model.parameters(), strict=True):
                parameter.copy_(master)

    return step


@case
def update_by_hand() -> Steps:
    model = Net()

    def step(_: int) -> None:
        model(batch()).square().mean().backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
        model.zero_grad()

    return step


@case
def closure() -> Steps:
    model = Net()
    optimizer = torch.optim.LBFGS(model.parameters(), 0.1, max_iter=3)
    x = batch()

    def step(_: int) -> None:
        def loss() -> Tensor:
            optimizer.zero_grad(set_to_none=False)
            value = model(x).square().mean()
            value.backward()
            return value

        optimizer.step(loss)

    return step


@case
def step_in_backward() -> Steps:
    """Each parameter has an optimizer of its own, which steps as soon as its gradient is there."""
    model = Net()
    optimizers = {parameter: torch.optim.SGD([parameter], 0.1) for parameter in model.parameters()}

    def update(parameter: Tensor) -> None:
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(update)

    def step(_: int) -> None:
        model(batch()).square().mean().backward()

    return step


@case
def siamese() -> Steps:
    """The same network gives the target, behind a detach()."""
    model, predictor = mlp(8, 8, 8), mlp(8, 8)
    optimizer = torch.optim.SGD([*model.parameters(), *predictor.parameters()], 0.1)

    def step(_: int) -> None:
        first, second = model(batch()), model(batch())
        optimizer.zero_grad()
        (-F.cosine_similarity(predictor(first), second.detach()).mean()).backward()
        optimizer.step()

    return step
