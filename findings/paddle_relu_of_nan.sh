#!/bin/sh
# Paddle's relu makes 0 of NaN on the CPU; relu6, leaky_relu and clip at 0 keep the NaN.
# Versions: paddlepaddle 3.3.1, numpy 2.4.6.
# A good guess: an activation hands a NaN on, as in torch and numpy's maximum, so that the loss tells of it.
# Seen: relu(NaN) is 0, so a NaN in a hidden layer ends at the next relu, and the loss is finite. A model ported between torch
# and Paddle agrees until the first NaN; relu6 and relu of one framework differ.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --target "$folder" paddlepaddle==3.3.1 numpy==2.4.6
PYTHONPATH=$folder python3 - <<'EOF'
import numpy as np
import paddle
import paddle.nn.functional as F

x = paddle.to_tensor(np.array([np.nan, -1, 2], np.float32), place=paddle.CPUPlace())
results = {
    "relu": F.relu(x),
    "relu6": F.relu6(x),
    "leaky_relu": F.leaky_relu(x),
    "clip": paddle.clip(x, 0, 6),
    "maximum": paddle.maximum(x, paddle.zeros_like(x)),
}
values = {name: value.numpy() for name, value in results.items()}
print(values)
assert values.pop("relu").tolist() == [0, 0, 2]
assert all(np.isnan(value[0]) and value[2] == 2 for value in values.values())
EOF
