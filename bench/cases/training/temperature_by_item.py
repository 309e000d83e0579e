"""The learned temperature enters the loss as a Python number.

Fact: no gradient
Where: temperature
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Contrastive(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.image, self.text = torch.nn.Linear(32, 16), torch.nn.Linear(24, 16)
        self.temperature = torch.nn.Parameter(torch.tensor(0.07))

    def forward(self, images, texts):
        a, b = F.normalize(self.image(images), dim=-1), F.normalize(self.text(texts), dim=-1)
        return a @ b.T / self.temperature.item()


model = Contrastive()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
images, texts = torch.randn(32, 32), torch.randn(32, 24)


def step(i=0):
    scores = model(images, texts)
    loss = F.cross_entropy(scores, torch.arange(len(scores)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(20):
        print(i, step(i))
