#!/bin/sh
# torch.onnx.export writes a batch norm of training as one of inference: the exported step takes the running statistics.
# Versions: torch 2.13.0, onnx 1.23.2, onnxscript 0.7.2, onnxruntime 1.32.0.
# A good guess: the module is in train mode, and torch.export keeps training=True, so the node has training_mode=1, or the export is refused.
# Seen: BatchNormalization without training_mode, and one general warning on train mode; results are those of eval(). A training step, or its backward pass, that is
# exported has other activations and gradients from the first batch norm on; its new running statistics are not updated either.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --no-compile --target "$folder" torch==2.13.0 onnx==1.23.2 onnxscript==0.7.2 onnxruntime==1.32.0 numpy==2.4.6
PYTHONPATH=$folder python3 - <<'EOF'
import copy

import onnxruntime
import torch

torch.manual_seed(0)
norm, x = torch.nn.BatchNorm1d(5), 3 * torch.randn(64, 5) + 1
kept = torch.export.export(copy.deepcopy(norm), (x,)).graph
training = [node.args[5] for node in kept.nodes if node.op == "call_function" and "batch_norm" in str(node.target)]
program = torch.onnx.export(copy.deepcopy(norm), (x,), dynamo=True, verbose=False)
attributes = [dict(node.attributes) for node in program.model.graph if node.op_type == "BatchNormalization"]
session = onnxruntime.InferenceSession(program.model_proto.SerializeToString(), providers=["CPUExecutionProvider"])
(result,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
with torch.no_grad():
    evaluated, trained = copy.deepcopy(norm).eval()(x), copy.deepcopy(norm)(x)
off = [float((torch.from_numpy(result) - one).abs().max()) for one in (evaluated, trained)]
print("training in torch.export:", training, "attributes:", [sorted(one) for one in attributes], "off from eval(), train():", off)
assert training == [True] and norm.training and len(attributes) == 1 and "training_mode" not in attributes[0]
assert off[0] < 1e-5 and off[1] > 1
EOF
