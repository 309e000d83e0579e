#!/bin/sh
# torch.onnx.export makes one Dropout, with one mask, of two dropouts that read the same tensor.
# Versions: torch 2.13.0, onnx 1.23.2, onnxscript 0.7.2.
# A good guess: two calls of dropout draw twice, so two nodes are exported; merging equal nodes is for what is deterministic.
# Seen: the exporter's optimizer merges them, the second output is an Identity of the first. In torch the two masks differ.
# Two rand_like of one tensor stay two nodes. An exported model for training, or for Monte Carlo dropout, is another one.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --no-compile --target "$folder" torch==2.13.0 onnx==1.23.2 onnxscript==0.7.2 numpy==2.4.6
PYTHONPATH=$folder python3 - <<'EOF'
import torch


class Twice(torch.nn.Module):
    def __init__(self, draw):
        super().__init__()
        self.draw = draw

    def forward(self, x):
        return self.draw(x), self.draw(x)


def operators(model):
    exported = torch.onnx.export(model, (torch.ones(64),), dynamo=True, verbose=False)
    return [node.op_type for node in exported.model.graph]


dropouts = Twice(lambda x: torch.nn.functional.dropout(x, 0.5, training=True))
torch.manual_seed(0)
one, other = dropouts(torch.ones(64))
assert not torch.equal(one, other)
merged, kept = operators(dropouts), operators(Twice(torch.rand_like))
print("dropout twice:", merged, "rand_like twice:", kept)
assert merged == ["Dropout", "Identity"]
assert kept.count("RandomUniformLike") == 2
EOF
