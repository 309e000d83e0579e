"""The optimizer is made before the model is copied for training: it holds the parameters of the other copy.

Fact: not_in_optimizer
Fact: none of its own parameters gets a gradient
Where: Classifier
"""

import copy

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(16, 32)
        self.head = torch.nn.Linear(32, 4)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


pretrained = Classifier()
optimizer = torch.optim.AdamW(pretrained.parameters(), 1e-3)
model = copy.deepcopy(pretrained)
inputs, labels = torch.randn(64, 16), torch.randint(0, 4, (64,))


def step(i=0):
    loss = F.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(20):
        print(i, step(i))
