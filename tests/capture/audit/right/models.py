"""Defines right steps of models of which parts get no gradient, or one of zeros."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tests.capture.audit.right.shared import Net, Steps, batch, case, mlp, trains


@case
def plain() -> Steps:
    model = Net()
    return trains(model, torch.optim.AdamW(model.parameters()))


@case
def frozen_weights() -> Steps:
    model = Net()
    model.encoder.requires_grad_(False)
    return trains(model, torch.optim.AdamW(model.parameters()))


@case
def unused_head() -> Steps:
    model = Net(has_unused=True)
    return trains(model, torch.optim.AdamW(model.parameters()))


class LoRA(nn.Module):
    """Adds a product of low rank, which begins as zero, to a frozen layer."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.a, self.b = nn.Parameter(torch.randn(2, 8)), nn.Parameter(torch.zeros(8, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) + x @ self.a.T @ self.b.T


@case
def lora() -> Steps:
    model = nn.Sequential(LoRA(nn.Linear(8, 8)), nn.GELU(), LoRA(nn.Linear(8, 8)))
    return trains(model, torch.optim.AdamW([p for p in model.parameters() if p.requires_grad]))


class WithTarget(nn.Module):
    """Holds its target network, as many agents do; the optimizer gets all parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.online, self.target = mlp(8, 8, 2), mlp(8, 8, 2)


@case
def target_network() -> Steps:
    model = WithTarget()
    optimizer = torch.optim.Adam(model.parameters())

    def step(_: int) -> None:
        x = batch()
        with torch.no_grad():
            best = model.target(x).max(1).values
        optimizer.zero_grad()
        F.smooth_l1_loss(model.online(x)[:, 0], best).backward()
        optimizer.step()

    return step


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.body, self.head = nn.Embedding(16, 8), mlp(8, 8, 8), nn.Linear(8, 16, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.body(self.embedding(ids)))


@case
def tied_weights() -> Steps:
    model = Tied()
    optimizer = torch.optim.AdamW(model.parameters())

    def step(_: int) -> None:
        optimizer.zero_grad()
        ids = torch.randint(0, 16, (2, 5))
        F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).backward()
        optimizer.step()

    return step


def checkpointed(use_reentrant: bool) -> Steps:
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters())

    def step(_: int) -> None:
        optimizer.zero_grad()
        x = batch().requires_grad_()
        z = checkpoint(model.encoder, x, use_reentrant=use_reentrant)
        z = checkpoint(model.encoder, z, use_reentrant=use_reentrant)
        model.head(z).square().mean().backward()
        optimizer.step()

    return step


@case
def checkpointing() -> Steps:
    return checkpointed(use_reentrant=False)


@case
def reentrant_checkpointing() -> Steps:
    return checkpointed(use_reentrant=True)


@case
def evaluation() -> Steps:
    model = Net().eval()

    def step(_: int) -> None:
        with torch.no_grad():
            model(batch())

    return step


@case
def gradients_of_the_input() -> Steps:
    """A saliency map: gradients of the parameters are of no use, and no optimizer runs."""
    model = Net().eval()

    def step(_: int) -> None:
        x = batch().requires_grad_()
        model(x).max().backward()

    return step


@case
def embedding() -> Steps:
    """Few rows of a large table are used; its gradient is sparse."""
    model = nn.Sequential(nn.Embedding(500, 8, sparse=True), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(_: int) -> None:
        optimizer.zero_grad()
        model(torch.randint(0, 500, (4,))).square().mean().backward()
        optimizer.step()

    return step


class Agent(nn.Module):
    """An actor and a critic on one body; the advantage is a constant to the actor."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.actor, self.critic = mlp(8, 8), nn.Linear(8, 3), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        z = torch.tanh(self.body(x))
        return self.actor(z), self.critic(z).squeeze(1)


@case
def actor_critic() -> Steps:
    model = Agent()
    optimizer = torch.optim.RMSprop(model.parameters())

    def step(_: int) -> None:
        logits, value = model(batch())
        actions = torch.multinomial(logits.detach().softmax(-1), 1).squeeze(1)
        rewards = torch.from_numpy(actions.numpy().astype("float32"))
        advantage = (rewards - value).detach()
        chosen = logits.log_softmax(-1).gather(1, actions[:, None]).squeeze(1)
        optimizer.zero_grad()
        (-(advantage * chosen).mean() + F.mse_loss(value, rewards)).backward()
        optimizer.step()

    return step


class Quantised(nn.Module):
    """A straight-through estimator: values are rounded, gradients pass."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = mlp(8, 8), mlp(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        z = self.encoder(x)
        return self.decoder(z + (z.round() - z).detach())


@case
def straight_through() -> Steps:
    model = Quantised()
    return trains(model, torch.optim.AdamW(model.parameters()))


@case
def meta_learning() -> Steps:
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())

    def step(_: int) -> None:
        weights = dict(model.named_parameters())
        loss = torch.func.functional_call(model, weights, (batch(),)).square().mean()
        gradients = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
        fast = {
            name: weight - 0.1 * gradient for (name, weight), gradient in zip(weights.items(), gradients, strict=True)
        }
        optimizer.zero_grad()
        torch.func.functional_call(model, fast, (batch(),)).square().mean().backward()
        optimizer.step()

    return step


@case
def per_sample_gradients() -> Steps:
    """torch.func calls the model with wrapped parameters."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(_: int) -> None:
        weights = {name: parameter.detach() for name, parameter in model.named_parameters()}

        def loss(weights: dict[str, Tensor], x: Tensor) -> Tensor:
            return torch.func.functional_call(model, weights, (x,)).square().mean()

        gradients = torch.func.vmap(torch.func.grad(loss), (None, 0))(weights, batch())
        for name, parameter in model.named_parameters():
            parameter.grad = gradients[name].mean(0)
        optimizer.step()

    return step


class Residual(nn.Module):
    """A branch whose last layer begins as zero."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(8, 8), nn.Linear(8, 8)
        nn.init.zeros_(self.two.weight)
        nn.init.zeros_(self.two.bias)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.two(torch.relu(self.one(x)))


@case
def branches_from_zero() -> Steps:
    model = nn.Sequential(*[Residual() for _ in range(8)])
    return trains(model, torch.optim.AdamW(model.parameters()))


@case
def dropout_and_frozen_norm() -> Steps:
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2))
    model[1].eval()
    return trains(model, torch.optim.AdamW(model.parameters()))


@case
def distances() -> Steps:
    """The last bias moves both points alike."""
    model = mlp(8, 8, 8)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(_: int) -> None:
        optimizer.zero_grad()
        x = batch()
        ((model(x) - model(x + 1)).square().sum(-1) + 1).sqrt().mean().backward()
        optimizer.step()

    return step


@case
def sampling() -> Steps:
    """An evaluation that draws, but no dropout."""
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)).eval()

    def step(_: int) -> None:
        with torch.no_grad():
            torch.multinomial(model(batch()).softmax(-1), 1)
            torch.rand(3).bernoulli()

    return step
