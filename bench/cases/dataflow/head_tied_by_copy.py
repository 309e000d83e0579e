"""The output layer is to share the embedding's weights, and gets a copy: both are trained apart.

Fact: parted_copy
Fact: had equal values
Fact: head.weight
Fact: embedding.weight
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class LanguageModel(torch.nn.Module):
    def __init__(self, vocabulary=60, width=32):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.rnn = torch.nn.GRU(width, width, batch_first=True)
        self.head = torch.nn.Linear(width, vocabulary, bias=False)
        self.head.weight.data.copy_(self.embedding.weight.data)

    def forward(self, ids):
        return self.head(self.rnn(self.embedding(ids))[0])


model = LanguageModel()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
ids = torch.randint(0, 60, (8, 21))


def step(i=0):
    loss = F.cross_entropy(model(ids[:, :-1]).transpose(1, 2), ids[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
