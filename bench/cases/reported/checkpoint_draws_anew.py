"""A hand-written checkpoint runs the block again without the state of the generator: dropout draws another mask.

Fact: dropout
Fact: backward
Steps: 2
Report: openai/guided-diffusion#167, GitHub
Missed: two runs of a module on one input, forward and backward, are not compared in their masks
"""

import torch
from torch import nn

torch.manual_seed(0)


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x, *parameters):
        ctx.block, ctx.x, ctx.parameters = block, x, parameters
        with torch.no_grad():
            return block(x)

    @staticmethod
    def backward(ctx, gradient):
        with torch.enable_grad():
            x = ctx.x.detach().requires_grad_()
            result = ctx.block(x)
        return None, *torch.autograd.grad(result, (x, *ctx.parameters), gradient)


stem, head = nn.Linear(12, 32), nn.Linear(32, 12)
block = nn.Sequential(nn.SiLU(), nn.Linear(32, 32), nn.Dropout(0.3), nn.SiLU())
optimizer = torch.optim.AdamW([*stem.parameters(), *block.parameters(), *head.parameters()], 1e-3)
clean = torch.randn(24, 12)


def step(i=0):
    noise = torch.randn_like(clean)
    hidden = stem(clean + noise)
    hidden = hidden + Checkpoint.apply(block, hidden, *block.parameters())
    loss = nn.functional.mse_loss(head(hidden), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
