"""Vision transformer (ViT): patches, a class token, pre-norm encoder layers, in plain torch.

Structure and parameter names are torchvision's (`encoder.layers.encoder_layer_0.self_attention.in_proj_weight`, ...).
Shapes: B batch, P patches, T tokens (P and the class token), C width.
"""

from collections import OrderedDict
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class ViTConfig:
    """Sizes of a ViT; the defaults are ViT-B/16 on images of 224 x 224."""

    image_size: int = 224
    patch_size: int = 16
    num_layers: int = 12
    num_heads: int = 12
    hidden_dim: int = 768
    mlp_dim: int = 3_072
    num_classes: int = 1_000
    dropout: float = 0.0
    attention_dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.image_size % self.patch_size:
            raise ValueError(
                f"image_size {self.image_size} is not a whole number of patches of {self.patch_size}; take a multiple."
            )
        if self.hidden_dim % self.num_heads:
            raise ValueError(
                f"hidden_dim {self.hidden_dim} does not divide into {self.num_heads} heads; take a multiple."
            )


VIT_B_16 = ViTConfig()
VIT_TINY = ViTConfig(image_size=32, patch_size=8, num_layers=2, num_heads=4, hidden_dim=64, mlp_dim=128, num_classes=10)


class EncoderLayer(nn.Module):
    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        width = config.hidden_dim
        self.ln_1 = nn.LayerNorm(width, eps=1e-6)
        self.self_attention = nn.MultiheadAttention(
            width, config.num_heads, dropout=config.attention_dropout, batch_first=True
        )
        self.dropout = nn.Dropout(config.dropout)
        self.ln_2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.Sequential(
            nn.Linear(width, config.mlp_dim),
            nn.GELU(),
            nn.Dropout(config.dropout),
            nn.Linear(config.mlp_dim, width),
            nn.Dropout(config.dropout),
        )

    def forward(self, x: Tensor) -> Tensor:  # (B, T, C) -> (B, T, C)
        y = self.ln_1(x)
        y, _ = self.self_attention(y, y, y, need_weights=False)
        x = self.dropout(y) + x
        out: Tensor = x + self.mlp(self.ln_2(x))
        return out


class Encoder(nn.Module):
    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        tokens = (config.image_size // config.patch_size) ** 2 + 1
        self.pos_embedding = nn.Parameter(torch.empty(1, tokens, config.hidden_dim).normal_(std=0.02))
        self.dropout = nn.Dropout(config.dropout)
        layers = ((f"encoder_layer_{index}", EncoderLayer(config)) for index in range(config.num_layers))
        self.layers = nn.Sequential(OrderedDict(layers))
        self.ln = nn.LayerNorm(config.hidden_dim, eps=1e-6)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, C) -> (B, T, C)
        out: Tensor = self.ln(self.layers(self.dropout(x + self.pos_embedding)))
        return out


class ViT(nn.Module):
    """Vision transformer: images `x` (B, 3, image_size, image_size) to logits (B, num_classes)."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.config = config
        width = config.hidden_dim
        self.conv_proj = nn.Conv2d(3, width, kernel_size=config.patch_size, stride=config.patch_size)
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.encoder = Encoder(config)
        self.heads = nn.Sequential(OrderedDict(head=nn.Linear(width, config.num_classes)))

    def forward(self, x: Tensor) -> Tensor:
        batch = x.shape[0]
        patches = self.conv_proj(x)  # (B, C, image_size / patch_size, image_size / patch_size)
        patches = patches.reshape(batch, self.config.hidden_dim, -1).permute(0, 2, 1)  # (B, P, C)
        x = torch.cat([self.class_token.expand(batch, -1, -1), patches], dim=1)  # (B, T, C)
        logits: Tensor = self.heads(self.encoder(x)[:, 0])
        return logits
