#!/bin/sh
# Functions of torch with equal values have other gradients at borders and ties.
# Versions: torch 2.13.0.
# A good guess: hardtanh is clamp, relu6 is clamp(0, 6), max over a dimension is amax: who replaces one by the other (by hand or
# in an export) trains alike.
# Seen: at the border itself clamp passes the gradient on, hardtanh and relu6 stop it, minimum of maximum halves it. Of two
# largest values amax gives half to each, max(dim) all to the first, cummax all to the last. Integers, quantized values and
# activations that a clip has put on its border meet this in many elements.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --no-compile --target "$folder" torch==2.13.0 numpy==2.4.6
PYTHONPATH=$folder python3 - <<'EOF'
import torch
import torch.nn.functional as F


def gradient(function, values):
    x = torch.tensor(values, requires_grad=True)
    function(x).sum().backward()
    return x.grad.tolist()


low, high = torch.tensor(-1.0), torch.tensor(1.0)
border = [-1.0, 0.0, 1.0]
at_border = {
    "hardtanh": gradient(F.hardtanh, border),
    "clamp": gradient(lambda x: x.clamp(-1, 1), border),
    "minimum of maximum": gradient(lambda x: torch.minimum(torch.maximum(x, low), high), border),
}
at_six = {"relu6": gradient(F.relu6, [0.0, 6.0]), "clamp": gradient(lambda x: x.clamp(0, 6), [0.0, 6.0])}
tie = [2.0, 1.0, 2.0]
at_tie = {
    "amax": gradient(lambda x: x.amax(0), tie),
    "max": gradient(lambda x: x.max(0).values, tie),
    "cummax": gradient(lambda x: x.cummax(0).values[-1], tie),
}
print(at_border, at_six, at_tie, sep="\n")
assert list(at_border.values()) == [[0, 1, 0], [1, 1, 1], [0.5, 1, 0.5]]
assert list(at_six.values()) == [[0, 0], [1, 1]]
assert list(at_tie.values()) == [[0.5, 0, 0.5], [1, 0, 0], [0, 0, 1]]
EOF
