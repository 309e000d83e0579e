import torch
from torch import nn

import nbkit

# As two processes of a job write them: each saves to the same name, and torchrun tells it its rank.
for rank in range(2):
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
    x = torch.randn(4, 8)
    with nbkit.optrace() as trace:
        model(x).mean().backward()
    trace.meta |= {"rank": rank, "world_size": 3, "host": "node0", "wall_us": 2000.0 + 100 * rank}
    trace.save(f"job/rank={rank}")

job = nbkit.load("job")
print(job.ranks[["rank", "state", "host", "rows", "wall_us"]].to_string(index=False))
query = "SELECT rank, op, count(*) AS calls FROM ops WHERE level = 'aten' GROUP BY ALL ORDER BY rank, op LIMIT 4"
calls = job.sql(query)
print(calls.to_string(index=False))
