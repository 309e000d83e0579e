#!/bin/sh
# A transformers model that was cast with .to(bfloat16) has other rotary angles than one loaded with dtype=bfloat16.
# Versions: torch 2.13.0, transformers 5.24.0.
# A good guess: from_pretrained(dtype=torch.bfloat16) and from_pretrained().to(torch.bfloat16) give the same model.
# Seen: the frequencies inv_freq are a buffer: from_pretrained leaves them float32, .to() rounds them to 8 bits. At position 8191
# an angle is off by more than a radian, its cosine by more than 1; at short positions nothing is seen.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --no-compile --target "$folder" torch==2.13.0 transformers==5.24.0 numpy==2.4.6
PYTHONPATH=$folder python3 - "$folder/model" <<'EOF'
import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(
    vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
    max_position_embeddings=8192,
)
LlamaForCausalLM(config).save_pretrained(sys.argv[1])
loaded = LlamaForCausalLM.from_pretrained(sys.argv[1], dtype=torch.bfloat16)
cast = LlamaForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32).to(torch.bfloat16)
assert all(torch.equal(one, other) for one, other in zip(loaded.parameters(), cast.parameters(), strict=True))

positions, like = torch.arange(8192)[None], torch.zeros(1, 8192, 32, dtype=torch.bfloat16)
right, wrong = (model.model.rotary_emb(like, positions)[0].float() for model in (loaded, cast))
off = (right - wrong).abs()[0].amax(-1)
print("inv_freq:", loaded.model.rotary_emb.inv_freq.dtype, cast.model.rotary_emb.inv_freq.dtype)
print("largest difference of a cosine up to position 16 and 8191:", off[:16].max().item(), off.max().item())
assert loaded.model.rotary_emb.inv_freq.dtype == torch.float32
assert cast.model.rotary_emb.inv_freq.dtype == torch.bfloat16
assert off[:16].max() < 0.02 and off.max() > 1
EOF
