"""Training steps of eleven models that are bound by computing: what opcost predicts the time of."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sample_models.llama import Llama, LlamaConfig
from sample_models.rwkv4 import RWKV4, RWKV4Config

Step = Callable[[], None]


def trained(model: nn.Module, loss: Callable[[], Tensor]) -> Step:
    """Returns one training step: zero_grad, forward, backward, AdamW."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


def mlp() -> Step:
    model = nn.Sequential(
        nn.Linear(1024, 4096), nn.GELU(), nn.LayerNorm(4096), nn.Linear(4096, 2048), nn.ReLU(), nn.Linear(2048, 1000)
    )
    x, y = torch.randn(256, 1024), torch.randint(1000, (256,))
    return trained(model, lambda: F.cross_entropy(model(x), y))


class Block(nn.Module):
    """Holds two convolutions with batch norm, and a shortcut."""

    def __init__(self, width: int, out: int, stride: int) -> None:
        super().__init__()
        self.first, self.first_norm = nn.Conv2d(width, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.second, self.second_norm = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.shortcut = nn.Conv2d(width, out, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:  # (B, width, H, W) -> (B, out, H / stride, W / stride)
        y = F.relu(self.first_norm(self.first(x)))
        return F.relu(self.shortcut(x) + self.second_norm(self.second(y)))


def resnet() -> Step:
    blocks = [Block(width, out, stride) for width, out, stride in ((64, 64, 1), (64, 128, 2), (128, 256, 2))]
    model = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1), *blocks,
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 100),
    )  # fmt: skip
    x, y = torch.randn(8, 3, 160, 160), torch.randint(100, (8,))
    return trained(model, lambda: F.cross_entropy(model(x), y))


def gru() -> Step:
    model, head = nn.GRU(512, 512, 2, batch_first=True), nn.Linear(512, 256)
    x, y = torch.randn(64, 32, 512), torch.randint(256, (64,))
    return trained(nn.ModuleList([model, head]), lambda: F.cross_entropy(head(model(x)[0][:, -1]), y))


def language_model(model: nn.Module, vocabulary: int, batch: int, length: int) -> Step:
    ids, targets = (torch.randint(vocabulary, (batch, length)) for _ in range(2))
    return trained(model, lambda: model(ids, targets))


def llama() -> Step:
    config = LlamaConfig(4096, 512, 1376, 4, 8, 4)
    return language_model(Llama(config), config.vocab_size, batch=2, length=256)


def rwkv4() -> Step:
    config = RWKV4Config(vocab_size=4096, context_length=128, width=512, layers=4, head_qk=64)
    return language_model(RWKV4(config), config.vocab_size, batch=4, length=128)


def of_transformers(name: str, config: str, inputs: Callable[[], dict[str, Tensor]], **options: Any) -> Step:
    """Returns the training step of a class of transformers on the loss that it computes itself."""
    import transformers

    model = getattr(transformers, name)(getattr(transformers, config)(**options)).train()
    given = inputs()
    return trained(model, lambda: model(**given).loss)


def text(batch: int, length: int) -> dict[str, Tensor]:
    tokens = torch.randint(3, 4096, (batch, length))
    return {"input_ids": tokens, "labels": tokens}


def images() -> dict[str, Tensor]:
    return {"pixel_values": torch.randn(4, 3, 160, 160), "labels": torch.randint(2, (4,))}


SIZES: dict[str, Any] = {
    "vocab_size": 4096, "hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 4, "num_attention_heads": 6,
}  # fmt: skip
VISION = {**SIZES, "image_size": 160}
del VISION["vocab_size"]
STEPS: dict[str, Callable[[], Step]] = {
    "MLP": mlp,
    "ResNet": resnet,
    "GRU": gru,
    "LLaMA": llama,
    "RWKV-4": rwkv4,
    "LLaMA, transformers": partial(
        of_transformers, "LlamaForCausalLM", "LlamaConfig", partial(text, 4, 128), **SIZES
    ),
    "GPT-2": partial(
        of_transformers, "GPT2LMHeadModel", "GPT2Config", partial(text, 2, 256), vocab_size=4096, n_embd=384, n_layer=4,
        n_head=6,
    ),
    "BERT": partial(of_transformers, "BertForMaskedLM", "BertConfig", partial(text, 4, 128), **SIZES),
    "T5": partial(
        of_transformers, "T5ForConditionalGeneration", "T5Config", partial(text, 4, 96), vocab_size=4096, d_model=384,
        d_kv=64, d_ff=1536, num_layers=3, num_heads=6, decoder_start_token_id=0,
    ),
    "ViT": partial(of_transformers, "ViTForImageClassification", "ViTConfig", images, **VISION),
    "ConvNeXt": partial(
        of_transformers, "ConvNextForImageClassification", "ConvNextConfig", images, depths=[2, 2, 2, 2],
        hidden_sizes=[48, 96, 192, 384],
    ),
}  # fmt: skip
