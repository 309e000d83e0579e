"""Defines the small models that faults are planted in, besides the sample models; sizes are odd where an axis is.

So a wrong axis shows, and some are square, so that a transposed operand has the right shape.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

NODES = 9


class ConvNet(nn.Module):
    """Convolutions, BatchNorm and GroupNorm, pooling of both kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 9, 3, stride=2)
        self.norm, self.groups = nn.BatchNorm2d(6), nn.GroupNorm(3, 9)
        self.head = nn.Linear(9, 5)

    def forward(self, x: Tensor) -> Tensor:  # (B, 3, 14, 14) -> (B, 5)
        x = F.max_pool2d(F.relu(self.norm(self.first(x)), inplace=True), 2)
        x = F.avg_pool2d(F.gelu(self.groups(self.second(x))), 3)
        return self.head(x.flatten(1).sigmoid())


class Transformer(nn.Module):
    """Attention by hand with a mask and dropout, LayerNorm, Tanh and Softplus."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(31, 24)
        self.norm, self.qkv, self.out = nn.LayerNorm(24), nn.Linear(24, 72), nn.Linear(24, 24)
        self.mlp = nn.Sequential(nn.LayerNorm(24), nn.Linear(24, 33), nn.Tanh(), nn.Linear(33, 24))
        self.head = nn.Linear(24, 5)

    def forward(self, ids: Tensor) -> Tensor:  # (B, T) -> (B, 5)
        x = self.embedding(ids)
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        hidden = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool, device=ids.device).triu(1)
        scores = (q @ k.transpose(-1, -2) / 24**0.5).masked_fill(hidden, -torch.inf)
        x = x + self.out(F.dropout(scores.softmax(-1), 0.25) @ v)
        x = x + self.mlp(x)
        return self.head(F.softplus(x).mean(1))


class Recurrent(nn.Module):
    """An LSTM and a GRU, one on the other."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.gru = nn.LSTM(7, 9, batch_first=True), nn.GRU(9, 11, batch_first=True)
        self.head = nn.Linear(11, 5)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, 7) -> (B, 5)
        return self.head(self.gru(self.lstm(x)[0])[0][:, -1])


class Autoencoder(nn.Module):
    """A variational autoencoder: noise from each generator, fused dropout, a transposed convolution, quotients."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(33, 128), nn.Linear(64, 33)
        self.up, self.head = nn.ConvTranspose1d(1, 3, 4, 2, 1), nn.Linear(33, 5)

    def forward(self, x: Tensor) -> Tensor:  # (B, 21, 33) -> (B, 5)
        mean, log_variance = self.encoder(x).chunk(2, -1)
        latent = mean + (log_variance / 2).exp() * torch.randn_like(mean) + torch.randn_like(mean) / 8
        latent, _ = torch.native_dropout(latent, 0.25, True)
        noisy = latent + torch.rand_like(latent) * torch.empty_like(latent).normal_(0.1, 0.5)
        noisy = noisy * torch.empty_like(latent).bernoulli_(0.75) + torch.native_dropout(mean, 0.5, True)[0]
        out = self.decoder(F.silu(noisy)).mean(1, keepdim=True)
        out = (self.up(out) - 0.2).amax(1)[:, ::2]
        return self.head(out / (out.square().mean(-1, keepdim=True) + 1e-5).sqrt())


class StateSpace(nn.Module):
    """A selective scan as running sums in logarithms, windows by strides, a gate, variance by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.mix, self.gate = nn.Embedding(31, 15), nn.Linear(15, 15), nn.Linear(15, 15)
        self.decay, self.head = nn.Parameter(torch.randn(15)), nn.Linear(15, 5)

    def forward(self, ids: Tensor) -> Tensor:  # (B, T) -> (B, 5)
        x = self.embedding(ids)
        decay = F.logsigmoid(self.decay).expand_as(x).cumsum(1).exp()
        x = (self.mix(x) * decay).cumsum(1)
        x = torch.where(x > 0, x, x.expm1()) * F.hardtanh(self.gate(x))
        x = F.pad(x.transpose(1, 2), (2, 0)).unfold(2, 3, 1).max(-1).values.transpose(1, 2)
        x = (x - x.mean(-1, keepdim=True)) * (x.var(-1, keepdim=True) + 1e-5).rsqrt()
        return self.head(x.logsumexp(1))


class GraphNet(nn.Module):
    """Messages along edges: index_select, index_add, scatter, a softmax over neighbors, products of batches."""

    def __init__(self) -> None:
        super().__init__()
        self.message, self.score, self.head = nn.Linear(7, 7), nn.Linear(14, 1), nn.Linear(7, 5)
        edges = torch.arange(3 * NODES)
        self.register_buffer("source", edges * 5 % NODES)
        self.register_buffer("target", edges * edges % NODES)

    def forward(self, x: Tensor) -> Tensor:  # (B, NODES, 7) -> (B, 5)
        pairs = torch.cat([x.index_select(1, self.source), x[:, self.target]], -1)
        scores = F.leaky_relu(self.score(pairs).squeeze(-1), 0.2)
        weights = (scores - scores.amax(1, keepdim=True)).exp()
        total = weights.new_zeros(len(x), NODES).index_add(1, self.target, weights)
        sent = self.message(x).index_select(1, self.source) * (weights / total[:, self.target]).unsqueeze(-1)
        x = sent.new_zeros(x.shape).index_add(1, self.target, sent)
        x = torch.baddbmm(x, x @ x.mT, x, beta=0.5, alpha=0.1)
        return self.head(F.elu(x).norm(dim=1))


class Attention(nn.Module):
    """Fused attention, causal and with a mask, between GELU and a loss's usual parts."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.norm = nn.Embedding(31, 16), nn.LayerNorm(16)
        self.qkv, self.out, self.head = nn.Linear(16, 48), nn.Linear(16, 16), nn.Linear(16, 5)

    def forward(self, ids: Tensor) -> Tensor:  # (B, T) -> (B, 5)
        x = self.embedding(ids)
        q, k, v = (one.unflatten(-1, (2, 8)).transpose(1, 2) for one in self.qkv(self.norm(x)).chunk(3, -1))
        seen = (ids[:, None, :] + ids[:, :, None]) % 3 > 0
        seen = (seen | torch.eye(ids.shape[1], dtype=torch.bool, device=ids.device))[:, None]
        both = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        both = both + F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        x = x + F.gelu(self.out(both.transpose(1, 2).flatten(2)))
        return self.head(x.relu().mean(1))
