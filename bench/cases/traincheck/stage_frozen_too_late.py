"""frozen_stages is honored by train(), which runs after the first steps: until then the stage is trained.

Fact: requires_grad=False
Fact: The optimizer changes
Where: stage
Report: MMPretrain 702
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Backbone(torch.nn.Module):
    def __init__(self, frozen_stages=1):
        super().__init__()
        self.stage, self.rest = torch.nn.Linear(16, 32), torch.nn.Linear(32, 32)
        self.head = torch.nn.Linear(32, 5)
        self.frozen_stages = frozen_stages

    def forward(self, x):
        return self.head(torch.relu(self.rest(torch.relu(self.stage(x)))))

    def train(self, mode=True):
        super().train(mode)
        if mode and self.frozen_stages > 0:
            self.stage.requires_grad_(False)
        return self


net = Backbone()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
inputs, labels = torch.randn(64, 16), torch.randint(0, 5, (64,))


def step(i=0):
    loss = F.cross_entropy(net(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i == 1:
        net.train()  # after the first validation
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
