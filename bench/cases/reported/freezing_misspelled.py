"""The features are to be frozen by require_grad, which is no attribute of a parameter: all of them are trained.

Fact: require_grad
Where: features
Steps: 2
Report: udacity/deep-learning-v2-pytorch#12, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)


class Flowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU())
        self.classifier = nn.Linear(8, 5)

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


model = Flowers()
for param in model.features.parameters():
    param.require_grad = False
optimizer = torch.optim.SGD(model.parameters(), 0.01)
images, labels = torch.rand(10, 3, 12, 12), torch.randint(0, 5, (10,))


def step(i=0):
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
