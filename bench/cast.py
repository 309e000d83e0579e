"""Does opcast's dry run say which ops a cast to bfloat16 hurts? Against casting each op alone.

For each model: `loss_change` of the frame `casts`, and how far the loss really moves when only that call of that op
runs in bfloat16; their rank correlation (Spearman), wanted >= 0.8 over at least 8 models. Ends with status 1 if it is
missed. The models are in float64, so that a loss shows what one cast of many does to it.
"""

import sys
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import nbkit
from sample_models.llama import LLAMA_TINY, Llama
from sample_models.rwkv4 import RWKV4, RWKV4_TINY

WANTED, MOST_CALLS = 0.8, 120
Loss = Callable[[], Tensor]


def main() -> int:
    torch.set_default_dtype(torch.float64)
    correlations = []
    for name, loss in models():
        correlation, count = measured(loss)
        correlations.append(correlation)
        sys.stdout.write(f"{name:<14} {correlation:5.2f} over {count} calls\n")
    median = float(np.median(correlations))
    reached = sum(one >= WANTED for one in correlations)
    sys.stdout.write(f"median {median:.2f}, {reached} of {len(correlations)} models at {WANTED} or more\n")
    return int(min(correlations) < WANTED)


def measured(loss: Loss) -> tuple[float, int]:
    """Returns the rank correlation between what the dry run says and what casting each call alone does."""
    with nbkit.opcast("bfloat16", dry_run=True, phases="forward") as trace:
        bare = loss()
        bare.backward()  # type: ignore[no-untyped-call]
    told = trace.casts.dropna(subset=["loss_change"]).groupby("op_id")["loss_change"].sum().abs()
    ops = trace.casts.drop_duplicates("op_id").set_index("op_id")
    numbers = trace.ops[trace.ops["level"] == "aten"].groupby("op").cumcount()
    chosen = told.sample(min(MOST_CALLS, len(told)), random_state=1).index
    pairs = []
    for op_id in chosen:
        with nbkit.opcast("bfloat16", ops=str(ops["op"][op_id]), calls=int(numbers[op_id])):
            moved = loss().detach()
        pairs.append((float(told[op_id]), abs(float(moved - bare.detach()))))
    return float(pd.DataFrame(pairs).rank().corr().iloc[0, 1]), len(pairs)


def models() -> Iterator[tuple[str, Loss]]:
    """Yields eight models and more, each with a loss that is the same at every call."""
    torch.manual_seed(0)
    ids = torch.randint(0, 64, (2, 16))
    for name, model in (("llama", Llama(LLAMA_TINY)), ("rwkv4", RWKV4(RWKV4_TINY))):
        yield name, _next_token(model, ids)
    x, labels = torch.randn(8, 3, 16, 16), torch.randint(0, 5, (8,))
    for name, model in (
        ("conv net", nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(1568, 5))),
        ("mlp", nn.Sequential(nn.Flatten(), *_layers(768, 64, nn.GELU), nn.Linear(64, 5))),
        ("tanh mlp", nn.Sequential(nn.Flatten(), *_layers(768, 32, nn.Tanh), nn.LayerNorm(32), nn.Linear(32, 5))),
    ):
        yield name, lambda model=model: F.cross_entropy(model(x), labels)
    rows = torch.randn(4, 10, 12)
    encoder = nn.TransformerEncoderLayer(12, 2, 24, dropout=0.0, batch_first=True)
    yield "transformer", lambda: encoder(rows).pow(3).mean()
    gru, head = nn.GRU(12, 16, batch_first=True), nn.Linear(16, 1)
    yield "gru", lambda: head(gru(rows)[0][:, -1]).pow(2).mean()
    for name, model in _transformers():
        yield name, lambda model=model: model(input_ids=ids, labels=ids).loss


def _layers(width: int, hidden: int, kind: type[nn.Module]) -> list[nn.Module]:
    return [nn.Linear(width, hidden), kind(), nn.Linear(hidden, hidden), kind(), nn.Linear(hidden, hidden), kind()]


def _next_token(model: nn.Module, ids: Tensor) -> Loss:
    def loss() -> Tensor:
        logits = model(ids)
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())

    return loss


def _transformers() -> Iterator[tuple[str, nn.Module]]:
    from transformers import GPT2Config, GPT2LMHeadModel, Qwen2Config, Qwen2ForCausalLM

    sizes = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    yield "qwen2", Qwen2ForCausalLM(Qwen2Config(**sizes, **heads)).train()
    drops = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    yield "gpt2", GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=4, **drops))


if __name__ == "__main__":
    sys.exit(main())
