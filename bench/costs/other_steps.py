"""Training steps written by hand that ask for values: routers, matchers, solvers, samplers, sparse gradients."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from bench.costs.steps import Step, trained
from bench.families.by_hand import mlp


class Experts(nn.Module):
    """A router that sends each token to its two best experts, which take their tokens by nonzero and index_add_."""

    def __init__(self, width: int = 16, experts: int = 4) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(mlp(width, 2 * width, width) for _ in range(experts))

    def forward(self, x: Tensor) -> Tensor:  # (B, T, C) -> (B, T, C)
        tokens = x.reshape(-1, x.shape[-1])
        weights, chosen = self.router(tokens).softmax(-1).topk(2, -1)
        out = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            token, slot = torch.where(chosen == number)
            if token.numel():
                out.index_add_(0, token, expert(tokens[token]) * weights[token, slot, None])
        return out.view_as(x)


class Grouped(Experts):
    """The same with tokens sorted by their expert, and the counts as a list."""

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.reshape(-1, x.shape[-1])
        weights, chosen = self.router(tokens).softmax(-1).max(-1)
        order = chosen.argsort(stable=True)
        counts = torch.bincount(chosen, minlength=len(self.experts)).tolist()
        parts = tokens[order].split(counts)
        out = torch.cat([expert(part) for expert, part in zip(self.experts, parts, strict=True)])
        return (torch.empty_like(out).index_copy(0, order, out) * weights[:, None]).view_as(x)


def experts(kind: type[Experts]) -> Step:
    model, x = nn.Sequential(nn.Linear(16, 16), kind(), nn.Linear(16, 4)), torch.randn(2, 9, 16)
    return trained(model, lambda: model(x).square().mean())


def encoder(padded: bool = False) -> Step:
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), 2)
    x = torch.randn(2, 9, 16)
    if padded:
        masks = {"src_key_padding_mask": torch.arange(9) > torch.tensor([[8], [5]])}
    else:
        masks = {"mask": nn.Transformer.generate_square_subsequent_mask(9)}
    return trained(model, lambda: model(x, **masks).square().mean())


def seq2seq() -> Step:
    model = nn.Transformer(16, 4, 1, 1, 32, batch_first=True)
    source, target = torch.randn(2, 9, 16), torch.randn(2, 7, 16)
    return trained(
        model,
        lambda: model(source, target, tgt_mask=model.generate_square_subsequent_mask(7)).square().mean(),
    )


def ppo() -> Step:
    """One epoch of minibatches, which ends where the policy has moved too far; advantages are normalized."""
    model, states = mlp(4, 16, 3), torch.randn(32, 4)
    actions, old, gains = torch.randint(3, (32,)), torch.full((32,), -1.1), torch.randn(32)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)

    def step() -> None:
        for rows in torch.randperm(32).split(16):
            policy = torch.distributions.Categorical(logits=model(states[rows]))
            ratio = (policy.log_prob(actions[rows]) - old[rows]).exp()
            if (ratio - 1 - ratio.log()).mean() > 1.5:
                break
            gain = (gains[rows] - gains[rows].mean()) / (gains[rows].std() + 1e-8)
            loss = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean() - 0.01 * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()

    return step


def sampled() -> Step:
    """REINFORCE: actions are drawn, and the environment, in Python, takes them as numbers."""
    model = mlp(4, 16, 2)

    def loss() -> Tensor:
        state, logs, rewards = torch.zeros(4), [], []
        for _ in range(5):
            policy = torch.distributions.Categorical(logits=model(state))
            action = policy.sample()
            logs.append(policy.log_prob(action))
            rewards.append(1.0 if action.item() == 1 else -1.0)
            state = torch.tensor([rewards[-1], *state[:3].tolist()])
        return -(torch.stack(logs) * torch.tensor(rewards)).sum()

    return trained(model, loss)


def lbfgs(search: str | None) -> Step:
    model, x, y = mlp(6, 8, 1), torch.randn(20, 6), torch.randn(20, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4, line_search_fn=search)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        return loss

    return lambda: optimizer.step(closure) and None


def bags(mode: str) -> Step:
    bag, head = nn.EmbeddingBag(50, 8, mode=mode, sparse=True), nn.Linear(8, 3)
    words, starts = torch.randint(50, (20,)), torch.tensor([0, 4, 9, 15])
    first, second = torch.optim.SparseAdam(bag.parameters()), torch.optim.Adam(head.parameters())

    def step() -> None:
        first.zero_grad()
        second.zero_grad()
        F.cross_entropy(head(bag(words, starts)), torch.tensor([0, 1, 2, 0])).backward()
        first.step()
        second.step()

    return step


def sparse_rows() -> Step:
    table = nn.Embedding(50, 8, sparse=True)
    optimizer, words = torch.optim.SGD(table.parameters(), 0.1), torch.randint(50, (3, 7))

    def step() -> None:
        optimizer.zero_grad()
        table(words).square().mean().backward()
        optimizer.step()

    return step


def packed() -> Step:
    model, x, lengths = nn.LSTM(6, 8, batch_first=True), torch.randn(3, 7, 6), torch.tensor([7, 4, 2])

    def loss() -> Tensor:
        rows = pack_padded_sequence(x, lengths, batch_first=True)
        return pad_packed_sequence(model(rows)[0], batch_first=True)[0].square().mean()

    return trained(model, loss)


def adversarial() -> Step:
    made, critic = mlp(4, 16, 6), mlp(6, 16, 1)
    first, second = torch.optim.Adam(made.parameters()), torch.optim.Adam(critic.parameters())

    def step() -> None:
        real, fake = torch.randn(8, 6), made(torch.randn(8, 4))
        mixed = torch.lerp(real, fake.detach(), torch.rand(8, 1)).requires_grad_()
        (slope,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
        second.zero_grad()
        (critic(fake.detach()).mean() - critic(real).mean() + (slope.norm(dim=1) - 1).square().mean()).backward()
        second.step()
        first.zero_grad()
        (-critic(fake).mean()).backward()
        first.step()

    return step


def maml() -> Step:
    model, x, y = mlp(1, 16, 1), torch.randn(4, 10, 1), torch.randn(4, 10, 1)

    def adapted(task: int) -> Tensor:
        weights = dict(model.named_parameters())
        loss = F.mse_loss(torch.func.functional_call(model, weights, x[task, :5]), y[task, :5])
        slopes = torch.autograd.grad(loss, [*weights.values()], create_graph=True)
        moved = {name: value - 0.1 * slope for (name, value), slope in zip(weights.items(), slopes, strict=True)}
        return F.mse_loss(torch.func.functional_call(model, moved, x[task, 5:]), y[task, 5:])

    return trained(model, lambda: torch.stack([adapted(task) for task in range(4)]).mean())


def ctc(zero: bool) -> Step:
    model, x = nn.Linear(8, 11), torch.randn(20, 3, 8)
    targets, lengths = torch.randint(1, 11, (3, 6)), torch.tensor([20, 18, 15])
    return trained(
        model,
        lambda: F.ctc_loss(model(x).log_softmax(-1), targets, lengths, torch.tensor([6, 5, 4]), zero_infinity=zero),
    )


def ctc_in_a_row() -> Step:
    """Targets of all texts in one row, as the loss of cuDNN takes them."""
    model, x = nn.Linear(8, 11), torch.randn(20, 3, 8)
    return trained(
        model,
        lambda: F.ctc_loss(model(x).log_softmax(-1), torch.randint(1, 11, (15,)), (20, 18, 15), (6, 5, 4)),
    )


def least_squares(driver: str) -> Step:
    model, x, y = mlp(6, 16, 5), torch.randn(12, 6), torch.randn(12, 2)

    def loss() -> Tensor:
        features = model(x)
        return (features @ torch.linalg.lstsq(features, y, driver=driver).solution - y).square().mean()

    return trained(model, loss)


def until_it_converges() -> Step:
    """A deep equilibrium model: the layer is applied until its result changes no more."""
    model, x = mlp(8, 8), torch.randn(4, 8)

    def loss() -> Tensor:
        z = torch.zeros_like(x)
        with torch.no_grad():
            for _ in range(30):
                z, before = 0.3 * torch.tanh(model(z)) + x, z
                if (z - before).norm() < 1e-3 * z.norm():
                    break
        return (0.3 * torch.tanh(model(z)) + x).square().mean()

    return trained(model, loss)


def halting() -> Step:
    """Adaptive computation time: it goes on until every row has halted."""
    model, halt, x = nn.GRUCell(6, 6), nn.Linear(6, 1), torch.randn(5, 6)

    def loss() -> Tensor:
        state, total, steps = torch.zeros(5, 6), torch.zeros(5), 0
        while not (total > 0.9).all() and steps < 6:
            state, steps = model(x, state), steps + 1
            total = total + halt(state).sigmoid().squeeze(1)
        return state.square().mean() + total.mean()

    return trained(nn.ModuleList([model, halt]), loss)


def matched() -> Step:
    """Each target is matched with a query by the Hungarian algorithm of scipy."""
    from scipy.optimize import linear_sum_assignment

    model, x, targets = mlp(6, 16, 4), torch.randn(5, 6), torch.rand(3, 4)

    def loss() -> Tensor:
        boxes = model(x)
        rows, columns = linear_sum_assignment(torch.cdist(boxes, targets, p=1).detach().cpu().numpy())
        return F.l1_loss(boxes[torch.as_tensor(rows)], targets[torch.as_tensor(columns)])

    return trained(model, loss)


def suppressed() -> Step:
    """Boxes are kept, the best first, where they overlap no better one."""
    model, x = mlp(6, 16, 5), torch.randn(12, 6)

    def loss() -> Tensor:
        out = model(x)
        order, kept = out[:, 4].argsort(descending=True), []
        while order.numel():
            best = order[0]
            kept.append(out[best])
            order = order[1:][(out[order[1:], :4] - out[best, :4]).abs().sum(1) > 0.5]
        return torch.stack(kept).square().mean()

    return trained(model, loss)


def hardest() -> Step:
    """A triplet loss on the hardest negatives, of those that are wrong alone."""
    model, x, label = mlp(6, 16, 4), torch.randn(12, 6), torch.arange(12) % 3

    def loss() -> Tensor:
        apart = torch.cdist(model(x), model(x))
        same = label[:, None] == label
        rows = apart[same].view(12, -1).amax(1) - apart.masked_fill(same, 1e9).amin(1) + 1
        wrong = rows[rows > 0]
        return wrong.mean() if wrong.numel() else rows.sum() * 0

    return trained(model, loss)


def quantized() -> Step:
    """A VQ-VAE, which draws codes anew that nobody used."""
    model, codes, x = mlp(6, 16, 4), torch.randn(8, 4), torch.randn(12, 6)

    def loss() -> Tensor:
        out = model(x)
        nearest = torch.cdist(out, codes).argmin(1)
        used = torch.bincount(nearest, minlength=8)
        if (used == 0).any():
            codes[used == 0] = out.detach()[: int((used == 0).sum())]
        return (out - codes[nearest]).square().mean()

    return trained(model, loss)


def pooled() -> Step:
    """Messages in a graph, pooled by clusters that unique() numbers; edges within one are dropped."""
    model, x, edges = mlp(8, 8), torch.randn(20, 8), torch.randint(20, (2, 60))

    def loss() -> Tensor:
        out = model(x)
        cluster = out.argmax(1).unique(return_inverse=True)[1]
        size = int(cluster.max()) + 1
        pool = torch.zeros(size, 8).index_add(0, cluster, out)
        ends = cluster[edges]
        ends = ends[:, ends[0] != ends[1]]
        return pool.index_add(0, ends[0], pool[ends[1]]).square().mean()

    return trained(model, loss)


def rays() -> Step:
    """A NeRF whose network sees the samples in occupied space alone."""
    model, points, density = mlp(3, 16, 4), torch.rand(8, 16, 3), torch.rand(4, 4, 4)

    def loss() -> Tensor:
        cell = (points * 4).long()
        mask = density[cell[..., 0], cell[..., 1], cell[..., 2]] > 0.5
        out = torch.zeros(8, 16, 4)
        out[mask] = model(points[mask])
        weights = 1 - (-out[..., 3].relu()).exp()
        return (out[..., :3] * weights[..., None]).sum(1).square().mean()

    return trained(model, loss)


def greedy() -> Step:
    """Scheduled sampling: the decoder reads its own words until it ends."""
    model = nn.ModuleList([nn.Embedding(9, 8), nn.GRUCell(8, 8), nn.Linear(8, 9)])

    def loss() -> Tensor:
        state, word, logits = torch.zeros(1, 8), torch.tensor([1]), []
        for _ in range(6):
            state = model[1](model[0](word), state)
            logits.append(model[2](state))
            word = logits[-1].argmax(1)
            if word.item() == 0:
                break
        return torch.stack(logits).logsumexp(-1).mean()

    return trained(model, loss)


def careful() -> Step:
    """A loop as many write it: it prints the loss, skips steps that are not finite, clips, and adapts the rate."""
    model, x, y = mlp(6, 16, 3), torch.randn(8, 6), torch.arange(8) % 3
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    best = [float("inf")]

    def step() -> None:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        if not torch.isfinite(loss):
            return
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
        if norm > 100:
            return
        optimizer.step()
        plateau.step(loss.item())
        if loss.item() < best[0]:
            best[0] = 1.0

    return step


def checked(kind: type[torch.distributions.Distribution]) -> Step:
    """A VAE's terms by torch.distributions, which check the values of what they are given."""
    model, x = mlp(6, 16, 8), torch.randn(8, 6)

    def loss() -> Tensor:
        mean, scale = model(x).chunk(2, 1)
        own = kind(mean, F.softplus(scale) + 1e-3)
        z = own.rsample() if own.has_rsample else own.sample()
        return -own.log_prob(z).mean() + torch.distributions.Normal(0.0, 1.0).log_prob(z).mean()

    return trained(model, loss)


def searched() -> Step:
    """A line search that halves the rate until the loss falls."""
    model, x, y = mlp(6, 8, 1), torch.randn(20, 6), torch.randn(20, 1)

    def step() -> None:
        model.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        rate = 1.0
        with torch.no_grad():
            while rate > 1e-2:
                weights = {name: value - rate * value.grad for name, value in model.named_parameters()}
                if F.mse_loss(torch.func.functional_call(model, weights, x), y) < loss:
                    break
                rate /= 2
            for name, value in model.named_parameters():
                value.copy_(weights[name])

    return step


def pruned() -> Step:
    """Weights below the median are cut, and the loss is of what is left."""
    model, x = nn.Linear(8, 8), torch.randn(4, 8)

    def loss() -> Tensor:
        weight = model.weight
        left = weight.abs() > weight.detach().abs().median().item()
        return F.linear(x, weight * left, model.bias).square().mean() + 0.01 * weight[left].abs().sum()

    return trained(model, loss)


def sparse_graph() -> Step:
    model, x = nn.Linear(8, 8), torch.randn(20, 8)
    graph = torch.sparse_coo_tensor(torch.randint(20, (2, 60)), torch.ones(60), (20, 20)).coalesce()
    return trained(model, lambda: torch.sparse.mm(graph, model(x)).relu().square().mean())


def from_a_loader() -> Step:
    """Rows of different lengths, cut to the longest of the batch."""
    model, ids = nn.Embedding(9, 8, padding_idx=0), torch.tensor([[3, 4, 5, 0, 0], [2, 1, 0, 0, 0]])

    def loss() -> Tensor:
        length = int((ids != 0).sum(1).max())
        return model(ids[:, :length])[ids[:, :length] != 0].square().mean()

    return trained(model, loss)


OTHER_STEPS: dict[str, Callable[[], Step]] = {
    "experts by nonzero": lambda: experts(Experts),
    "experts by sorted tokens": lambda: experts(Grouped),
    "TransformerEncoder, mask": encoder,
    "TransformerEncoder, padding": lambda: encoder(padded=True),
    "nn.Transformer, mask": seq2seq,
    "PPO": ppo,
    "REINFORCE": sampled,
    "LBFGS": lambda: lbfgs(None),
    "LBFGS, strong Wolfe": lambda: lbfgs("strong_wolfe"),
    "sparse embedding bags, sum": lambda: bags("sum"),
    "sparse embedding bags, mean": lambda: bags("mean"),
    "sparse embedding": sparse_rows,
    "packed LSTM": packed,
    "GAN with a penalty": adversarial,
    "MAML": maml,
    "CTC": lambda: ctc(zero=False),
    "CTC, infinity as zero": lambda: ctc(zero=True),
    "CTC, targets in a row": ctc_in_a_row,
    "lstsq, gels": lambda: least_squares("gels"),
    "lstsq, gelsd": lambda: least_squares("gelsd"),
    "deep equilibrium": until_it_converges,
    "adaptive computation time": halting,
    "Hungarian matching": matched,
    "boxes that overlap": suppressed,
    "hardest negatives": hardest,
    "VQ-VAE": quantized,
    "graph pooling": pooled,
    "NeRF": rays,
    "scheduled sampling": greedy,
    "a careful loop": careful,
    "VAE, Normal": lambda: checked(torch.distributions.Normal),
    "VAE, Laplace": lambda: checked(torch.distributions.Laplace),
    "line search": searched,
    "pruning": pruned,
    "sparse graph": sparse_graph,
    "rows of different lengths": from_a_loader,
}
