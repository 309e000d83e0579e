"""Training steps by what they train for and how: adversaries, rewards, noise, copies of a model, two passes."""

import copy
import itertools

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.right.registry import Step, right, trained


def mlp(*sizes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for ins, outs in itertools.pairwise(sizes):
        layers += [nn.Linear(ins, outs), nn.GELU()]
    return nn.Sequential(*layers[:-1])


@right("noise of a diffusion, float32")
def diffusion() -> Step:
    kept = torch.linspace(0.99, 0.01, 50)

    def loss(m: nn.Module) -> Tensor:
        x, noise, t = torch.randn(64, 2) + 2, torch.randn(64, 2), torch.randint(0, 50, (64,))
        share = kept[t][:, None]
        noisy = share.sqrt() * x + (1 - share).sqrt() * noise
        return F.mse_loss(m(torch.cat([noisy, t[:, None] / 50], 1)), noise)

    return trained(mlp(3, 32, 2), loss)


@right("velocities of a flow between noise and data, bfloat16")
def flow_matching() -> Step:
    def loss(m: nn.Module) -> Tensor:
        x, noise, t = torch.randn(64, 2) + 2, torch.randn(64, 2), torch.rand(64, 1)
        inputs = torch.cat([(1 - t) * noise + t * x, t], 1).bfloat16()
        return F.mse_loss(m(inputs).float(), x - noise)

    return trained(mlp(3, 32, 2), loss, "bfloat16")


@right("a variational autoencoder, autocast")
def variational() -> Step:
    model = nn.ModuleList([mlp(16, 32, 8), mlp(4, 32, 16)])

    def loss(m: nn.Module) -> Tensor:
        x = torch.randn(64, 16)
        mean, log_variance = m[0](x).float().chunk(2, -1)  # type: ignore[index]
        made = m[1](mean + (log_variance / 2).exp() * torch.randn_like(mean)).float()  # type: ignore[index]
        distance = (mean.square() + log_variance.exp() - log_variance - 1).sum(-1).mean() / 2
        return F.mse_loss(made, x) + 0.01 * distance

    return trained(model, loss, "autocast")


@right("a codebook with straight-through gradients, float32")
def quantized() -> Step:
    model = nn.ModuleDict({"encode": mlp(16, 32, 8), "codes": nn.Embedding(32, 8), "decode": mlp(8, 32, 16)})

    def loss(m: nn.Module) -> Tensor:
        x = torch.randn(64, 16)
        z = m["encode"](x)  # type: ignore[index]
        code = m["codes"](torch.cdist(z, m["codes"].weight).argmin(1))  # type: ignore[index]
        made = m["decode"](z + (code - z).detach())  # type: ignore[index]
        return F.mse_loss(made, x) + F.mse_loss(code, z.detach()) + 0.25 * F.mse_loss(z, code.detach())

    return trained(model, loss)


@right("a generator and its critic, float32")
def adversaries() -> Step:
    generator, critic = mlp(4, 32, 2), mlp(2, 32, 1)
    of_generator = torch.optim.Adam(generator.parameters(), 1e-3, (0.5, 0.99))
    of_critic = torch.optim.Adam(critic.parameters(), 1e-3, (0.5, 0.99))

    def step() -> None:
        real, made = torch.randn(64, 2) + 1, generator(torch.randn(64, 4))
        loss = F.softplus(-critic(real)).mean() + F.softplus(critic(made.detach())).mean()
        of_critic.zero_grad()
        loss.backward()
        of_critic.step()
        of_generator.zero_grad()
        F.softplus(-critic(made)).mean().backward()
        of_generator.step()

    return step


@right("contrasts between two views, float32")
def contrasts() -> Step:
    def loss(m: nn.Module) -> Tensor:
        x = torch.randn(32, 16)
        one, other = (F.normalize(m(x + 0.1 * torch.randn_like(x)), dim=-1) for _ in range(2))
        return F.cross_entropy(one @ other.T / 0.1, torch.arange(32))

    return trained(mlp(16, 32, 8), loss)


@right("a queue of keys from an averaged copy, float32")
def queue_of_keys() -> Step:
    model = mlp(16, 32, 8)
    keys_of = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    queue = [F.normalize(torch.randn(64, 8), dim=-1)]

    def step() -> None:
        x = torch.randn(32, 16)
        query = F.normalize(model(x), dim=-1)
        with torch.no_grad():
            for kept, current in zip(keys_of.parameters(), model.parameters(), strict=True):
                kept.lerp_(current, 0.01)
            key = F.normalize(keys_of(x + 0.1 * torch.randn_like(x)), dim=-1)
        logits = torch.cat([(query * key).sum(1, keepdim=True), query @ queue[0].T], 1) / 0.1
        optimizer.zero_grad()
        F.cross_entropy(logits, torch.zeros(32, dtype=torch.long)).backward()
        optimizer.step()
        queue[0] = torch.cat([key, queue[0]])[:64]

    return step


@right("views that predict each other, without gradient to one, autocast")
def stopped() -> Step:
    model = nn.ModuleList([mlp(16, 32, 8), mlp(8, 16, 8)])

    def loss(m: nn.Module) -> Tensor:
        x = torch.randn(32, 16)
        one, other = (m[0](x + 0.1 * torch.randn_like(x)) for _ in range(2))  # type: ignore[index]
        pairs = ((m[1](one), other), (m[1](other), one))  # type: ignore[index]
        return -sum(F.cosine_similarity(left.float(), right.detach().float()).mean() for left, right in pairs) / 2  # type: ignore[return-value]

    return trained(model, loss, "autocast")


@right("a student of a frozen teacher, bfloat16")
def distilled() -> Step:
    teacher = mlp(16, 64, 5).to(torch.bfloat16).eval().requires_grad_(False)

    def loss(m: nn.Module) -> Tensor:
        x = torch.randn(64, 16, dtype=torch.bfloat16)
        with torch.no_grad():
            wanted = (teacher(x).float() / 2).softmax(-1)
        return F.kl_div((m(x).float() / 2).log_softmax(-1), wanted, reduction="batchmean") * 4

    return trained(mlp(16, 32, 5), loss, "bfloat16")


@right("quantiles by the pinball loss, float32")
def quantiles() -> Step:
    levels = torch.tensor([0.1, 0.5, 0.9])

    def loss(m: nn.Module) -> Tensor:
        x = torch.randn(64, 4)
        off = x.sum(1, keepdim=True) + torch.randn(64, 1) - m(x)
        return torch.maximum(levels * off, (levels - 1) * off).mean()

    return trained(mlp(4, 32, 3), loss)


@right("policy and value with clipped ratios, float32")
def clipped_policy() -> Step:
    body, act, judge = mlp(4, 32, 32), nn.Linear(32, 3), nn.Linear(32, 1)
    model = nn.ModuleList([body, act, judge])
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)

    def step() -> None:
        states, gains = torch.randn(64, 4), torch.randn(64)
        with torch.no_grad():
            old = torch.distributions.Categorical(logits=act(body(states)))
            actions = old.sample()
            before, better = old.log_prob(actions), gains - judge(body(states)).squeeze(1)
        for _ in range(2):
            hidden = body(states)
            now = torch.distributions.Categorical(logits=act(hidden))
            ratio = (now.log_prob(actions) - before).exp()
            surrogate = torch.minimum(ratio * better, ratio.clamp(0.8, 1.2) * better).mean()
            loss = F.mse_loss(judge(hidden).squeeze(1), gains) - surrogate - 0.01 * now.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()

    return step


@right("values of actions with a target network, float32")
def action_values() -> Step:
    model = mlp(4, 32, 3)
    target = copy.deepcopy(model).requires_grad_(False)

    def loss(m: nn.Module) -> Tensor:
        state, after = torch.randn(64, 4), torch.randn(64, 4)
        action, reward = torch.randint(0, 3, (64, 1)), torch.randn(64)
        with torch.no_grad():
            wanted = reward + 0.9 * target(after).max(1).values
        return F.smooth_l1_loss(m(state).gather(1, action).squeeze(1), wanted)

    return trained(model, loss)


@right("a squashed Gaussian policy, float32")
def squashed_policy() -> Step:
    judge = mlp(6, 32, 1).requires_grad_(False)

    def loss(m: nn.Module) -> Tensor:
        states = torch.randn(64, 4)
        mean, log_std = m(states).chunk(2, -1)
        normal = torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())
        raw = normal.rsample()
        log_probability = normal.log_prob(raw) - 2 * (0.6931 - raw - F.softplus(-2 * raw))
        return (0.1 * log_probability.sum(-1) - judge(torch.cat([states, raw.tanh()], 1)).squeeze(1)).mean()

    return trained(mlp(4, 32, 4), loss)


@right("low-rank adapters of a frozen layer, float32")
def adapters() -> Step:
    base = nn.Linear(32, 32).requires_grad_(False)
    down, up = nn.Linear(32, 4, bias=False), nn.Linear(4, 32, bias=False)
    nn.init.zeros_(up.weight)

    def loss(_: nn.Module) -> Tensor:
        x = torch.randn(64, 32)
        return F.mse_loss(base(x) + up(down(x)), x.roll(1, 1))

    return trained(nn.ModuleList([down, up]), loss)


@right("an average of the weights in float32, bfloat16")
def averaged() -> Step:
    model = mlp(16, 32, 4).to(torch.bfloat16)
    average = [one.detach().float().clone() for one in model.parameters()]
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)

    def step() -> None:
        x = torch.randn(64, 16, dtype=torch.bfloat16)
        optimizer.zero_grad()
        F.mse_loss(model(x), x[:, :4]).backward()
        optimizer.step()
        with torch.no_grad():
            for kept, current in zip(average, model.parameters(), strict=True):
                kept.lerp_(current.float(), 0.01)

    return step


@right("micro-batches whose means are divided, float32")
def accumulated() -> Step:
    model = mlp(8, 32, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        for _ in range(4):
            x = torch.randn(16, 8)
            (F.mse_loss(model(x), x[:, :1]) / 4).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


@right("gradients of each sample by torch.func, clipped, float32")
def of_each_sample() -> Step:
    model = mlp(8, 16, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)

    def of_one(weights: dict[str, Tensor], x: Tensor) -> Tensor:
        return F.mse_loss(torch.func.functional_call(model, weights, (x[None],)), x[None, :1])

    def step() -> None:
        weights = {name: one.detach() for name, one in model.named_parameters()}
        each = torch.func.vmap(torch.func.grad(of_one), (None, 0))(weights, torch.randn(16, 8))
        norms = torch.stack([one.flatten(1).norm(dim=1) for one in each.values()]).norm(dim=0)
        share = (1 / norms).clamp(max=1)
        for name, one in model.named_parameters():
            one.grad = torch.einsum("b,b...->...", share, each[name]) / 16
        optimizer.step()

    return step


@right("a step ahead inside a step, second order, float32")
def meta() -> Step:
    def loss(m: nn.Module) -> Tensor:
        weights, x = dict(m.named_parameters()), torch.randn(16, 4)
        inner = F.mse_loss(torch.func.functional_call(m, weights, (x,)), x[:, :1])
        grads = torch.autograd.grad(inner, [*weights.values()], create_graph=True)
        ahead = {name: one - 0.1 * grad for (name, one), grad in zip(weights.items(), grads, strict=True)}
        y = torch.randn(16, 4)
        return F.mse_loss(torch.func.functional_call(m, ahead, (y,)), y[:, :1])

    return trained(mlp(4, 16, 1), loss)


@right("sharpness: up, then down from there, float32")
def sharpness() -> Step:
    model = mlp(8, 32, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)

    def step() -> None:
        x = torch.randn(32, 8)
        F.mse_loss(model(x), x[:, :1]).backward()
        with torch.no_grad():
            scale = 0.05 / torch.stack([one.grad.norm() for one in model.parameters()]).norm()  # type: ignore[union-attr]
            up = [one.grad * scale for one in model.parameters()]  # type: ignore[operator]
            for one, by in zip(model.parameters(), up, strict=True):
                one += by
        optimizer.zero_grad()
        F.mse_loss(model(x), x[:, :1]).backward()
        with torch.no_grad():
            for one, by in zip(model.parameters(), up, strict=True):
                one -= by
        optimizer.step()
        optimizer.zero_grad()

    return step


@right("tasks weighted by their uncertainty, compiled")
def tasks() -> Step:
    class Tasks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.heads = mlp(8, 32, 16), nn.ModuleList(nn.Linear(16, 1) for _ in range(2))
            self.log_variances = nn.Parameter(torch.zeros(2))

        def forward(self, x: Tensor) -> Tensor:
            hidden = F.gelu(self.body(x))
            losses = torch.stack([F.mse_loss(head(hidden), x[:, n : n + 1]) for n, head in enumerate(self.heads)])
            return (losses * (-self.log_variances).exp() + self.log_variances).sum()

    return trained(Tasks(), lambda m: m(torch.randn(32, 8)), "compiled")


@right("labels and inputs mixed, warm-up, float32")
def mixed() -> Step:
    model = mlp(16, 32, 5)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=10)

    def step() -> None:
        x, labels = torch.randn(32, 16), F.one_hot(torch.randint(0, 5, (32,)), 5).float()
        share, order = torch.distributions.Beta(0.4, 0.4).sample(), torch.randperm(32)
        logits = model(share * x + (1 - share) * x[order])
        loss = F.cross_entropy(logits, share * labels + (1 - share) * labels[order], label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()

    return step


@right("a function of torch.autograd with its own gradient, float32")
def own_function() -> Step:
    class Sign(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # noqa: ANN001, ANN205
            ctx.save_for_backward(x)
            return x.sign()

        @staticmethod
        def backward(ctx, gradient):  # noqa: ANN001, ANN205
            (x,) = ctx.saved_tensors
            return gradient * (x.abs() < 1)

    first, second = nn.Linear(16, 32), nn.Linear(32, 4)

    def loss(_: nn.Module) -> Tensor:
        x = torch.randn(64, 16)
        return F.cross_entropy(second(Sign.apply(first(x))), x[:, :4].argmax(1))

    return trained(nn.ModuleList([first, second]), loss)


@right("L-BFGS with a closure, float32")
def closures() -> Step:
    model, x = mlp(4, 16, 1), torch.randn(64, 4)
    optimizer = torch.optim.LBFGS(model.parameters(), 0.5, max_iter=4)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), x.prod(1, keepdim=True))
        loss.backward()
        return loss

    return lambda: optimizer.step(closure)
