"""Makes ONNX models from text, for the tests of their reader."""

from pathlib import Path

import onnx
from onnx import parser

BRANCHES = """
<ir_version: 10, opset_import: ["": 20, "own": 1], producer_name: "by hand", metadata_props: ["who": "me"]>
main (float[N, 3] x, bool c) => (float[N, 3] y, float[N, 1] s)
<float[3, 3] w = {1, 0, 0, 0, 1, 0, 0, 0, 1}, float half = {0.5}, float[N, 3] h> {
  two = Constant <value: tensor = float[1] {2.0}> ()
  h = MatMul (x, w)
  y = If (c) <
    then_branch: graph = yes () => (float[N, 3] a) { a = Mul (h, two) },
    else_branch: graph = no () => (float[N, 3] b) { b = own.Scaled (h, half) }
  >
  axes = Constant <value_ints: ints = [1]> ()
  s = ReduceSum <keepdims: int = 1> (y, axes)
}
<domain: "own", opset_import: ["": 20]>
Scaled (v, f) => (r) { r = Mul (v, f) }
"""

LOOP = """
<ir_version: 10, opset_import: ["": 20]>
count (int64 n, bool c, float[2] start) => (float[2] last) {
  step = Constant <value_floats: floats = [1.0, 2.0]> ()
  last = Loop (n, c, start) <
    body: graph = body (int64 i, bool go, float[2] v) => (bool on, float[2] w) {
      on = Identity (go)
      w = Add (v, step)
    }
  >
}
"""

SCOPED = """
<ir_version: 8, opset_import: ["": 17], producer_name: "pytorch", producer_version: "1.13.0">
torch_jit (float[2, 4] x) => (float[2, 4] y)
<float[4, 4] w = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}> {
  h = MatMul (x, w)
  y = Relu (h)
}
"""


def written(text: str, folder: Path, names: tuple[str, ...] = ()) -> Path:
    """Writes the model to a file, which onnx itself checks; returns its path; `names` are those of its nodes."""
    model = parser.parse_model(text)
    for node, node_name in zip(model.graph.node, names, strict=False):
        node.name = node_name
    onnx.checker.check_model(model, full_check=True)
    path = folder / "model.onnx"
    onnx.save_model(model, path)
    return path
