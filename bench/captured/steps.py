"""Twelve training steps: of language models, convolutions, RNNs, CTC, sparse, complex and random numbers."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.families.inputs import IDS, Family
from bench.families.transformers_models import of_transformers, text
from sample_models.llama import LLAMA_SMALL, Llama, LlamaConfig
from sample_models.rwkv4 import RWKV4, RWKV4Config

Step = Callable[[], Any]
Make = Callable[[], Step]


def trained(model: nn.Module, optimizer: torch.optim.Optimizer, loss: Callable[[], Tensor], clip: bool = False) -> Step:
    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def language_model(model: nn.Module, vocabulary: int, **options: Any) -> Step:
    ids, targets = (torch.randint(vocabulary, (4, 64)) for _ in range(2))
    return trained(model, torch.optim.AdamW(model.parameters(), lr=1e-4, **options), lambda: model(ids, targets))


def llama(config: LlamaConfig) -> Step:
    return language_model(Llama(config), config.vocab_size)


def rwkv4() -> Step:
    config = RWKV4Config(vocab_size=512, context_length=64, width=128, layers=4, head_qk=32)
    model = RWKV4(config)
    return language_model(model, config.vocab_size, foreach=False)


class ConvNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, stride=2, groups=4), nn.GroupNorm(4, 64), nn.SiLU(), nn.Dropout2d(0.2),
            nn.ConvTranspose2d(64, 32, 2, stride=2), nn.InstanceNorm2d(32, affine=True), nn.AdaptiveAvgPool2d(4),
        )  # fmt: skip
        self.head = nn.Linear(512, 10)

    def forward(self, x: Tensor) -> Tensor:  # (B, 3, 32, 32) -> (B, 10)
        return self.head(self.body(x).flatten(1))


def convolutions() -> Step:
    model = ConvNet().to(memory_format=torch.channels_last)
    x = torch.randn(16, 3, 32, 32).to(memory_format=torch.channels_last)
    y = torch.randint(10, (16,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True, weight_decay=1e-4)
    return trained(model, optimizer, lambda: F.cross_entropy(model(x), y, label_smoothing=0.1))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(24, 64, num_layers=2, dropout=0.3, bidirectional=True, batch_first=True)
        self.gru, self.cell, self.head = nn.GRU(128, 64, batch_first=True), nn.LSTMCell(64, 64), nn.Linear(64, 5)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:  # (B, T, 24), (B) -> (B, 5)
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        states, last = self.gru(states)
        hidden, cell = last[0], torch.zeros_like(last[0])
        for time in range(6):
            hidden, cell = self.cell(states[:, time], (hidden, cell))
        return self.head(hidden)


def recurrent() -> Step:
    model = Recurrent()
    x, lengths, y = torch.randn(12, 20, 24), torch.randint(8, 21, (12,)), torch.randint(5, (12,))
    return trained(model, torch.optim.RMSprop(model.parameters()), lambda: F.cross_entropy(model(x, lengths), y), True)


def ctc() -> Step:
    model = nn.Sequential(nn.Conv1d(40, 128, 5, stride=2), nn.GELU(), nn.Conv1d(128, 30, 1))
    x, targets = torch.randn(8, 40, 200), torch.randint(1, 30, (8, 20))
    lengths, target_lengths = torch.full((8,), 98), torch.randint(10, 21, (8,))

    def loss() -> Tensor:
        scores = model(x).permute(2, 0, 1).log_softmax(-1)
        return F.ctc_loss(scores, targets, lengths, target_lengths, zero_infinity=True)

    return trained(model, torch.optim.Adamax(model.parameters()), loss)


def sparse() -> Step:
    table, bag = nn.Embedding(2000, 32, sparse=True), nn.EmbeddingBag(2000, 32, mode="mean", sparse=True)
    dense = nn.Linear(32, 16)
    ids, offsets = torch.randint(2000, (400,)), torch.arange(0, 400, 10)
    links = torch.randint(400, (2, 3000))
    graph = torch.sparse_coo_tensor(links, torch.rand(3000), (400, 400)).coalesce()
    compressed = graph.to_sparse_csr()
    rows = torch.optim.SparseAdam([*table.parameters(), *bag.parameters()])
    others = torch.optim.Adagrad(dense.parameters())

    def step() -> None:
        rows.zero_grad()
        others.zero_grad()
        mixed = torch.sparse.mm(graph, table(ids)) + (compressed @ table(ids).detach())
        (dense(mixed).square().mean() + bag(ids, offsets).sum(0).norm()).backward()
        rows.step()
        others.step()

    return step


class Waves(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.filter = nn.Parameter(torch.randn(33, 32, dtype=torch.complex64))
        self.mix = nn.Parameter(torch.randn(32, 32, dtype=torch.complex64) / 8)

    def forward(self, x: Tensor) -> Tensor:  # (B, 64, 32) -> ()
        waves = torch.fft.rfft(x, dim=1) * self.filter.conj()
        mixed = waves @ self.mix.mH + torch.linalg.solve(self.mix + 4 * torch.eye(32), waves.mT).mT
        back = torch.fft.irfft(mixed, n=64, dim=1)
        sizes = torch.linalg.eigvalsh(self.mix @ self.mix.mH)
        return back.square().mean() + mixed.angle().cos().mean() + sizes.sum()


def complex_numbers() -> Step:
    model, x = Waves(), torch.randn(8, 64, 32)
    return trained(model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), lambda: model(x))


def mixed_precision() -> Step:
    layer = nn.TransformerEncoderLayer(128, 4, 256, dropout=0.1, batch_first=True, norm_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    x, mask = torch.randn(4, 48, 128), nn.Transformer.generate_square_subsequent_mask(48)
    average = torch.optim.swa_utils.AveragedModel(model)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True, amsgrad=True)

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast(x.device.type, torch.bfloat16):
            loss = model(x, mask=mask, is_causal=True).float().square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5, foreach=True)
        optimizer.step()
        average.update_parameters(model)

    return step


class Random(nn.Module):
    """A variational autoencoder with discrete choices, noise, masks and buffers that are written in place."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode, self.choose = nn.Linear(64, 64), nn.Linear(32, 64), nn.Linear(32, 8)
        self.codes = nn.Parameter(torch.randn(8, 32))
        self.register_buffer("seen", torch.zeros(8))

    def forward(self, x: Tensor, generator: torch.Generator) -> Tensor:  # (B, 64) -> ()
        mean, scale = F.alpha_dropout(self.encode(x), 0.1).chunk(2, -1)
        latent = mean + torch.randn_like(mean) * (scale / 2).exp()
        weights = F.gumbel_softmax(self.choose(latent), hard=True)
        self.seen.index_add_(0, torch.multinomial(weights.detach(), 1)[:, 0], torch.ones(len(x)))
        noisy = F.rrelu(latent + weights @ self.codes, training=True)
        noisy = noisy.masked_fill(torch.rand(noisy.shape, generator=generator) < 0.1, 0.0)
        order = torch.randperm(len(x), generator=generator)
        out = self.decode(F.dropout(noisy, 0.2))[order]
        held = torch.empty(0)
        torch.add(out.detach(), 1.0, out=held)
        held[:, ::2].exponential_(2.0, generator=generator)
        return F.mse_loss(out, x[order]) + (held * out).mean() + torch.bernoulli(out.sigmoid().detach()).mean()


def random_numbers() -> Step:
    model, x, generator = Random(), torch.randn(512, 64), torch.Generator(torch.get_default_device()).manual_seed(5)
    return trained(model, torch.optim.NAdam(model.parameters()), lambda: model(x, generator))


def of_family(family: Family) -> Step:
    model, loss = family()
    return trained(model, torch.optim.AdamW(model.parameters()), loss, clip=True)


WIDE = LlamaConfig(
    vocab_size=256, hidden_size=512, intermediate_size=1408, num_hidden_layers=4, num_attention_heads=8,
    num_key_value_heads=4,
)  # fmt: skip
MIXTRAL = {"hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2}
MIXTRAL |= {"num_hidden_layers": 2, "num_local_experts": 4, "vocab_size": IDS}
BERT = {"hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2}
BERT |= {"vocab_size": IDS}
STEPS: dict[str, Make] = {
    "LLaMA, AdamW": lambda: llama(LLAMA_SMALL),
    "wide LLaMA, AdamW": lambda: llama(WIDE),
    "RWKV-4, AdamW tensor by tensor": rwkv4,
    "convolutions, SGD": convolutions,
    "LSTM and GRU, RMSprop": recurrent,
    "CTC, Adamax": ctc,
    "sparse, SparseAdam and Adagrad": sparse,
    "complex, SGD": complex_numbers,
    "autocast, foreach AdamW": mixed_precision,
    "random numbers, NAdam": random_numbers,
    "transformers: Mixtral": lambda: of_family(
        of_transformers("MixtralForCausalLM", "MixtralConfig", text(64), **MIXTRAL)
    ),
    "transformers: DeBERTa-v2": lambda: of_family(
        of_transformers("DebertaV2ForMaskedLM", "DebertaV2Config", text(64), **BERT, relative_attention=True)
    ),
}
