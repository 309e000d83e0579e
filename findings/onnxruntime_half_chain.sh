#!/bin/sh
# onnxruntime's CPU provider computes a chain of float16 operators in float32, also with every graph optimization off.
# Versions: onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6.
# A good guess: each operator of a float16 model rounds to float16, so (x + 1000) - 1000 loses the decimals of x.
# Seen: the decimals are all there, as nothing is rounded between the two; numpy's float16 gives 0, 1.5, 0, 0.5. The sum
# in between, made an output of the model too, is rounded when it is read and is not what the difference was computed of.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --target "$folder" onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
PYTHONPATH=$folder python3 - <<'EOF'
import numpy as np
import onnxruntime
from onnx import TensorProto, checker, helper

half = TensorProto.FLOAT16
x, total, back = (helper.make_tensor_value_info(name, half, [4]) for name in ("x", "total", "back"))
offset = helper.make_tensor("offset", half, [], np.array([1000], np.float16))
nodes = [helper.make_node("Add", ["x", "offset"], ["total"]), helper.make_node("Sub", ["total", "offset"], ["back"])]
graph = helper.make_graph(nodes, "chain", [x], [back, total], [offset])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
checker.check_model(model, full_check=True)

options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
values = np.array([0.1, 1.3, 0.24, 0.26], np.float16)
computed, between = session.run(None, {"x": values})
rounded = (values + np.float16(1000)) - np.float16(1000)
print("onnxruntime:", computed, "numpy:", rounded, "the sum as read:", between)
assert computed.dtype == between.dtype == np.float16
assert rounded.tolist() == [0, 1.5, 0, 0.5]
assert computed.tolist() == values.tolist()
assert (between - np.float16(1000)).tolist() == rounded.tolist()
EOF
