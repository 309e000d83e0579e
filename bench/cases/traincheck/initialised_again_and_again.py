"""post_init() walks the tree once per level, and draws the weights of inner layers anew each time.

Fact: filled with random numbers
Fact: what was learned, or loaded, is lost
Line: module.weight.normal_(0.0, 0.02)
Steps: 1
Report: Transformers 17877
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc, self.c_proj = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)

    def forward(self, x):
        return x + self.c_proj(F.gelu(self.c_fc(x)))


net = torch.nn.Sequential(torch.nn.Sequential(Block()), torch.nn.Linear(16, 5))
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
inputs, labels = torch.randn(64, 16), torch.randint(0, 5, (64,))


def init_weights(module):
    with torch.no_grad():
        if isinstance(module, torch.nn.Linear):
            module.weight.normal_(0.0, 0.02)
        for inner in module.children():
            inner.apply(init_weights)


def step(i=0):
    net(inputs)  # a dry run that builds the model
    init_weights(net)
    loss = F.cross_entropy(net(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    print(step())
