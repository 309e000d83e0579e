"""The last position of each text is taken, which for all but the longest is padding.

Fact: padding
Line: last = states[:, -1]
Steps: 2
Report: keitakurita/practical-torchtext#5, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)


class Toxic(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(200, 16, padding_idx=1)
        self.gru, self.head = nn.GRU(16, 24, batch_first=True), nn.Linear(24, 1)

    def forward(self, ids):
        states, _ = self.gru(self.words(ids))
        last = states[:, -1]
        return self.head(last).squeeze(-1)


model = Toxic()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
texts, labels = torch.randint(2, 200, (10, 18)), torch.randint(0, 2, (10,)).float()
texts[torch.arange(18) >= torch.tensor([18, 7, 12, 4, 9, 15, 6, 11, 8, 10])[:, None]] = 1


def step(i=0):
    loss = nn.functional.binary_cross_entropy_with_logits(model(texts), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
