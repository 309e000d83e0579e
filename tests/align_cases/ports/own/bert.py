"""BERT's encoder: norms after the sums, a boolean mask of padding, activation by erf, positions as a slice."""

import torch
from torch import Tensor, nn


class Encoder(nn.Module):
    def __init__(self, width: int, inner: int, heads: int, eps: float) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm_a, self.norm_b = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)

    def attended(self, x: Tensor, padding: Tensor) -> Tensor:
        q, k, v = (linear(x).unflatten(-1, (self.heads, -1)) for linear in (self.q, self.k, self.v))
        scores = torch.einsum("bqhd,bkhd->bqhk", q, k) * q.shape[-1] ** -0.5
        weights = scores.masked_fill(padding[:, None, None], torch.finfo(x.dtype).min).softmax(-1)
        return self.o(torch.einsum("bqhk,bkhd->bqhd", weights, v).flatten(2))

    def activated(self, x: Tensor) -> Tensor:
        return x * 0.5 * (1.0 + torch.erf(x * 2**-0.5))

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        x = self.norm_a(x + self.attended(x, padding))
        return self.norm_b(x + self.down(self.activated(self.up(x))))


class OwnBert(nn.Module):
    def __init__(self, vocabulary: int, positions: int, width: int, inner: int, heads: int, layers: int) -> None:
        super().__init__()
        eps = 1e-12
        self.words, self.places, self.kinds = (nn.Embedding(size, width) for size in (vocabulary, positions, 2))
        self.norm = nn.LayerNorm(width, eps)
        self.stack = nn.ModuleList(Encoder(width, inner, heads, eps) for _ in range(layers))

    def padding(self, attention_mask: Tensor) -> Tensor:
        return attention_mask == 0

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        x = self.words(input_ids) + self.places.weight[: input_ids.shape[1]] + self.kinds(token_type_ids)
        x, padding = self.norm(x), self.padding(attention_mask)
        for encoder in self.stack:
            x = encoder(x, padding)
        return x


NAMES = {  # those of transformers
    "words": "embeddings.word_embeddings",
    "places": "embeddings.position_embeddings",
    "kinds": "embeddings.token_type_embeddings",
    "norm": "embeddings.LayerNorm",
    "stack": "encoder.layer",
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "o": "attention.output.dense",
    "up": "intermediate.dense",
    "down": "output.dense",
    "norm_a": "attention.output.LayerNorm",
    "norm_b": "output.LayerNorm",
}
