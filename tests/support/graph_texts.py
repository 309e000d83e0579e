"""Dumps of other frameworks in a few lines, and the model that they are of."""

from torch import Tensor, nn

# The listing of an nn.Graph, after AMP.
ONEFLOW = """\
(GRAPH:net_0:Graph): (
  (MODULE:net:Net()): (
    (MODULE:net.up:Linear(in_features=4, out_features=8, bias=False)): (
      (PARAMETER:net.up.weight:tensor(..., size=(8, 4), dtype=oneflow.float32)): ()
      (OPERATOR: net.up.weight() -> (out:sbp=(B), size=(8, 4), dtype=(oneflow.float32)))
      (OPERATOR: net.up.weight-out-cast_f2h(net.up.weight/out:(sbp=(B), size=(8, 4), dtype=(oneflow.float32))) -> \
(net.up.weight-out-cast_f2h/out_0:(sbp=(B), size=(8, 4), dtype=(oneflow.bfloat16))))
      (OPERATOR: net.up-broadcast_matmul-0(_net_0_input.0.0_2/out:(sbp=(B), size=(2, 4), dtype=(oneflow.bfloat16)), \
net.up.weight-out-cast_f2h/out_0:(sbp=(B), size=(8, 4), dtype=(oneflow.bfloat16))) -> \
(net.up-broadcast_matmul-0/out_0:(sbp=(B), size=(2, 8), dtype=(oneflow.bfloat16))))
    )
    (OPERATOR: net-relu-1(net.up-broadcast_matmul-0/out_0:(sbp=(B), size=(2, 8), dtype=(oneflow.bfloat16))) -> \
(net-relu-1/y_0:(sbp=(B), size=(2, 8), dtype=(oneflow.bfloat16))))
  )
)
"""
PADDLE = """\
{ // block_idx:0  parent_idx:-1  forward_idx:-1  backward_idx:-1
    var x : LOD_TENSOR.shape(2, 4).dtype(float32).stop_gradient(True)
    persist trainable param fc.w_0 : LOD_TENSOR.shape(4, 8).dtype(float32).stop_gradient(False)
    var y : LOD_TENSOR.shape(2, 8).dtype(float32).stop_gradient(False)
    var z : LOD_TENSOR.shape(2, 8).dtype(float32).stop_gradient(False)

    {Out=['y']} = matmul_v2(inputs={X=['x'], Y=['fc.w_0']}, op_role = 0, trans_x = False, trans_y = False)
    {Out=['z']} = relu(inputs={X=['y']}, op_role = 0)
}
"""
PIR = """\
{
    (%0) = "builtin.parameter" () {is_parameter:[true],parameter_name:"w",persistable:[true]} : () -> tensor<8x16xf32>
    (%1) = "pd_op.data" () {name:"x",shape:(pd_op.IntArray)[4,8]} : () -> builtin.tensor<4x8xf32>
    (%2) = "pd_op.matmul" (%1, %0) {struct_name:"/Net/"} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    () = "builtin.shadow_output" (%2) {output_name:"y"} : (tensor<4x16xf32>) ->
}
"""


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(4, 8, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.up(x)
        return y.relu()
