"""nn.MultiheadAttention expects positions first and gets the batch first: samples attend to each other.

Fact: batch
Where: attention
Line: x = x + self.attention(x, x, x)[0]
Steps: 2
Report: om-ai-lab/OmDet#19, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.norm = nn.MultiheadAttention(24, 4), nn.LayerNorm(24)

    def forward(self, x):
        x = x + self.attention(x, x, x)[0]
        return self.norm(x)


patches, layer, head = nn.Conv2d(3, 24, 4, 4), Layer(), nn.Linear(24, 6)
optimizer = torch.optim.AdamW([*patches.parameters(), *layer.parameters(), *head.parameters()], 1e-3)
images, labels = torch.randn(10, 3, 16, 16), torch.randint(0, 6, (10,))


def step(i=0):
    tokens = patches(images).flatten(2).mT
    loss = nn.functional.cross_entropy(head(layer(tokens).mean(1)), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
