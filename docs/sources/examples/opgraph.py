from pathlib import Path

import torch

import nbkit

# What OneFlow prints of an nn.Graph that was built with graph.debug(1), of its compilation and its training.
LOG = """\
[08/24 02:43:17 libai]: Rank of current process: 0. World size: 2
I20220824 02:43:18.000000 7 job.cpp:9] net_0 start compiling with pass pass_cnt_0-AutoMixedPrecision
I20220824 02:43:18.250000 7 job.cpp:9] net_0 finish compiling with pass pass_cnt_0-AutoMixedPrecision
 Graph name net_0 in Rank: 0, Device: 0 needs to allocate [ 12.5 MiB ] device memory.
   In general, Chunk id: 1  memory is [ 10 MiB ] with mem_block_num = 3
(GRAPH:net_0:Graph): (
  (MODULE:net:Net()): (
    (MODULE:net.up:Linear(in_features=4, out_features=8, bias=False)): (
      (INPUT:_net.up_input.0.0_2:tensor(..., sbp=(oneflow.sbp.broadcast,), is_lazy='True', size=(2, 4), \
dtype=oneflow.float32))
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
[08/24 02:44:21 lb.utils.events]:  iteration: 19/10000  consumed_samples: 320  total_loss: 9.68  lr: 8.00e-04
"""
Path("net.log").write_text(LOG)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(4, 8, bias=False)

    def forward(self, x):
        return torch.relu(self.up(x))


model, x = Net(), torch.ones(2, 4)
with nbkit.optrace() as step:
    model(x)

found = nbkit.opgraph(step, against="net.log")
log = nbkit.opgraph("net.log", color="sbp")
print(log.brief())

rows = found.correspondence[["level", "action", "relation", "left_name", "left_op", "right_op"]]
print(rows.fillna("-").to_string(index=False))

colored = nbkit.opgraph(model).color_by(nbkit.opgraph(model).modules, "params")
print(colored.overlay.merge(colored.parts, on="part_id")[["module", "type", "value"]].to_string(index=False))
