"""The roles that modules, parts and nodes of a graph may play, in the words of the field."""

ROLES = {
    "embedding": "token, position or patch embedding",
    "rotary": "rotary positions: their tables and their use",
    "norm": "LayerNorm, RMSNorm, BatchNorm, GroupNorm",
    "block": "decoder or encoder layer, or another block that repeats",
    "attention": "softmax attention with its projections",
    "time_mix": "RWKV's time mixing, in the place of attention",
    "channel_mix": "RWKV's channel mixing, in the place of the MLP",
    "mlp": "feed-forward network, gated (SwiGLU) or not",
    "head": "projection to the vocabulary or to classes",
    "loss": "loss, and the first value of its gradient",
    "residual": "addition of a branch to the residual stream",
    "optimizer": "optimizer step: updates, their state, gradient clipping, loss scaling",
    "communication": "collective, send, receive, boxing",
    "cast": "change of dtype",
}
