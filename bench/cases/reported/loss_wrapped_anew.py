"""The model gives its scores by .data, and Variable(loss, requires_grad=True) silences the error.

Fact: no gradient
Fact: .data
Steps: 3
Report: huggingface/torchMoji#21, GitHub
"""

import torch
from torch import nn
from torch.autograd import Variable

torch.manual_seed(0)


class Moji(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.lstm = nn.Embedding(120, 16), nn.LSTM(16, 24, batch_first=True)
        self.head = nn.Linear(24, 2)

    def forward(self, ids):
        hidden, _ = self.lstm(self.words(ids))
        scores = self.head(hidden[:, -1]).data
        return scores.squeeze()


model = Moji()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
ids, labels = torch.randint(0, 120, (16, 9)), torch.randint(0, 2, (16,))


def step(i=0):
    loss = nn.functional.cross_entropy(model(ids), labels)
    loss = Variable(loss, requires_grad=True)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(3):
        print(i, step(i))
