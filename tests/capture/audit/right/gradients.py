"""Defines right steps that compute gradients for something else than the next step of an optimizer."""

import torch
import torch.nn.functional as F

from tests.capture.audit.right.shared import Net, Steps, batch, case, mlp


@case
def adversarial_examples() -> Steps:
    """The attack leaves gradients of the weights, which nobody needs."""
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())

    def step(_: int) -> None:
        x = batch()
        for _ in range(3):
            x = x.detach().requires_grad_()
            model.zero_grad()
            model(x).square().mean().backward()
            x = x + 0.1 * x.grad.sign()
        optimizer.zero_grad()
        model(x.detach()).square().mean().backward()
        optimizer.step()

    return step


@case
def sharpness_aware() -> Steps:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(_: int) -> None:
        x = batch()
        model(x).square().mean().backward()
        with torch.no_grad():
            moves = [0.05 * parameter.grad for parameter in model.parameters()]
            for parameter, move in zip(model.parameters(), moves, strict=True):
                parameter.add_(move)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        with torch.no_grad():
            for parameter, move in zip(model.parameters(), moves, strict=True):
                parameter.sub_(move)
        optimizer.step()
        optimizer.zero_grad()

    return step


@case
def gradients_of_tasks() -> Steps:
    """Keeps the gradients of each task, and puts their mean back."""
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())

    def step(_: int) -> None:
        kept = []
        for power in (1, 2, 3):
            optimizer.zero_grad()
            model(batch()).abs().pow(power).mean().backward()
            kept.append([parameter.grad for parameter in model.parameters()])
        for parameter, *of_tasks in zip(model.parameters(), *kept, strict=True):
            parameter.grad = torch.stack(of_tasks).mean(0)
        optimizer.step()

    return step


@case
def step_before_the_next_pass() -> Steps:
    """Steps with the gradients of the pass before; the first has none."""
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())

    def step(_: int) -> None:
        optimizer.step()
        optimizer.zero_grad()
        model(batch()).square().mean().backward()

    return step


@case
def importance_of_weights() -> Steps:
    """Sums the squares of gradients over samples, as elastic weight consolidation does, and steps later."""
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    importance = [torch.zeros_like(parameter) for parameter in model.parameters()]

    def step(i: int) -> None:
        for row in batch():
            optimizer.zero_grad()
            model(row).square().mean().backward()
            for parameter, whole in zip(model.parameters(), importance, strict=True):
                whole += parameter.grad.square()
        optimizer.zero_grad()
        model(batch()).square().mean().backward()
        optimizer.step()

    return step


@case
def critic_more_often() -> Steps:
    """A Wasserstein GAN with a gradient penalty: the critic steps at each batch, the generator at some."""
    generator, critic = mlp(8, 8, 8), mlp(8, 8, 1)
    of_generator, of_critic = (torch.optim.Adam(model.parameters()) for model in (generator, critic))

    def step(i: int) -> None:
        real, fake = batch(), generator(batch()).detach()
        between = (0.3 * real + 0.7 * fake).requires_grad_()
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        of_critic.zero_grad()
        (critic(fake).mean() - critic(real).mean() + (slope.norm(dim=1) - 1).square().mean()).backward()
        of_critic.step()
        if i % 3 == 2:
            of_generator.zero_grad()
            (-critic(generator(batch())).mean()).backward()
            of_generator.step()

    return step


@case
def student_of_an_average() -> Steps:
    """BYOL: the target network has no gradient, and follows the online one."""
    online, target = mlp(8, 8, 8), mlp(8, 8, 8)
    target.requires_grad_(False)
    optimizer = torch.optim.Adam(online.parameters())

    def step(_: int) -> None:
        x = batch()
        optimizer.zero_grad()
        (-F.cosine_similarity(online(x), target(x + 0.1)).mean()).backward()
        optimizer.step()
        with torch.no_grad():
            for mine, theirs in zip(target.parameters(), online.parameters(), strict=True):
                mine.lerp_(theirs, 0.1)

    return step


@case
def steps_only_where_finite() -> Steps:
    """Drops the gradients of a batch of which the norm is too large."""
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())

    def step(i: int) -> None:
        optimizer.zero_grad()
        (model(batch()).square().mean() * (1e6 if i == 1 else 1)).backward()
        if torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0) < 1e3:
            optimizer.step()

    return step
