#!/bin/sh
# onnxruntime's ReduceMax, ReduceMin and ArgMax on the CPU see a NaN only where it is the first value of a row.
# Versions: onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6.
# A good guess: a NaN anywhere gives NaN, as in numpy and torch; or none does, as in fmax.
# Seen: ReduceMax of (NaN, 1, 2) is NaN, of (1, NaN, 2) and (1, 2, NaN) it is 2; ArgMax gives 0, 2 and 1: the NaN is passed
# over. The maximum of two tensors (Max) keeps it. A range measured over activations so depends on where the NaN is.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --no-compile --target "$folder" onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
PYTHONPATH=$folder python3 - <<'EOF'
import numpy as np
import onnxruntime
from onnx import TensorProto, checker, helper

nan = float("nan")
rows = np.array([[nan, 1, 2], [1, nan, 2], [1, 2, nan]], np.float32)


def computed(operator, inputs, shape=(), dtype=TensorProto.FLOAT, **attributes):
    x, y = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3]), helper.make_tensor_value_info("y", dtype, shape)
    graph = helper.make_graph([helper.make_node(operator, inputs, ["y"], **attributes)], "one", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [session.run(None, {"x": row})[0].tolist() for row in rows]


largest, smallest = computed("ReduceMax", ["x"], keepdims=0), computed("ReduceMin", ["x"], keepdims=0)
places = computed("ArgMax", ["x"], dtype=TensorProto.INT64, axis=0, keepdims=0)
print("ReduceMax", largest, "ReduceMin", smallest, "ArgMax", places)
assert np.isnan(largest[0]) and largest[1:] == [2, 2]
assert np.isnan(smallest[0]) and smallest[1:] == [1, 1]
assert places == [0, 2, 1] and rows.argmax(1).tolist() == [0, 1, 2]
assert np.isnan(computed("Max", ["x", "x"], [3])).sum() == 3
EOF
