"""nn.LSTM without batch_first gets the batch first: it reads one sample after the other as if they were one text.

Fact: batch
Where: lstm
Line: states, _ = self.lstm(self.words(ids))
Steps: 2
Report: salesforce/cove#10, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)


class Sentiment(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.lstm, self.head = nn.Embedding(150, 16), nn.LSTM(16, 20), nn.Linear(20, 3)

    def forward(self, ids):
        states, _ = self.lstm(self.words(ids))
        return self.head(states[:, -1])


model = Sentiment()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
texts, moods = torch.randint(0, 150, (12, 9)), torch.randint(0, 3, (12,))


def step(i=0):
    loss = nn.functional.cross_entropy(model(texts), moods)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
