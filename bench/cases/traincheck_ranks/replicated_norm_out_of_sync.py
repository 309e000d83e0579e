"""Two tensor-parallel ranks clip the gradient of the norm that both hold, one of them only: the copies part.

Fact: had equal values
Fact: each is trained on its own
Where: norm.weight
Report: DeepSpeed 1801 (BLOOM-176B)
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Rank(torch.nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up, self.down = torch.nn.Linear(width, hidden), torch.nn.Linear(hidden, width)

    def forward(self, x):
        return self.down(F.gelu(self.up(self.norm(x))))


ranks = [Rank(16, 32), Rank(16, 32)]
with torch.no_grad():  # training goes on from a checkpoint, in which the norms of the ranks are equal
    ranks[0].norm.weight.uniform_(0.5, 1.5)
    ranks[1].norm.load_state_dict(ranks[0].norm.state_dict())
optimizers = [torch.optim.AdamW(rank.parameters(), 1e-3) for rank in ranks]
inputs, targets = torch.randn(32, 16), torch.randn(32, 16)


def step(i=0):
    loss = F.mse_loss(inputs + sum(rank(inputs) for rank in ranks), targets)
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()
    total = ranks[0].norm.weight.grad + ranks[1].norm.weight.grad
    for rank in ranks:
        rank.norm.weight.grad = total.clone()
    torch.nn.utils.clip_grad_norm_(ranks[0].parameters(), 0.01)
    for optimizer in optimizers:
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
