#!/bin/sh
# peft's merge_adapter() and unmerge_adapter() leave a bfloat16 base model that is not the one from before.
# Versions: peft 0.21.2, torch 2.13.0, transformers 5.24.0.
# A good guess: unmerging puts the base weights back, as they are frozen.
# Seen: merging adds the product of the adapter to the weight and unmerging subtracts it, each rounded to bfloat16: 42 % of
# the weights differ afterwards, by up to 0.002. In float32 some differ too, by 1.5e-8. To measure a merged model in between, and go
# on training, changes the base under every adapter; a copy of the weights is the only way back.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --target "$folder" torch==2.13.0 peft==0.21.2 transformers==5.24.0 numpy==2.4.6
PYTHONPATH=$folder python3 - <<'EOF'
import torch
from peft import LoraConfig, get_peft_model


def moved(dtype):
    torch.manual_seed(0)
    base = torch.nn.Sequential(torch.nn.Linear(64, 64)).to(dtype)
    model = get_peft_model(base, LoraConfig(r=4, target_modules=["0"], init_lora_weights=False))
    weight = model.base_model.model[0].base_layer.weight
    before = weight.detach().clone()
    model.merge_adapter()
    assert not torch.equal(weight, before)
    model.unmerge_adapter()
    off = (weight.float() - before.float()).abs()
    print(dtype, "weights that differ:", (off > 0).float().mean().item(), "by up to", off.max().item())
    return (off > 0).float().mean().item(), off.max().item()


share, most = moved(torch.bfloat16)
assert 0.3 < share < 0.5 and 1e-3 < most < 2**-8
share, most = moved(torch.float32)
assert 0 < share and most < 1e-7
EOF
