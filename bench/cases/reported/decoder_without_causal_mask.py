"""A decoder learns to predict the next token without a causal mask: it sees the token that it is to predict.

Fact: mask
Fact: next
Line: hidden = self.decoder(self.words(ids) + self.places.weight[: ids.shape[1]], memory)
Steps: 2
Report: alex-matton/causal-transformer-decoder#1, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.source, self.words, self.places = nn.Embedding(40, 16), nn.Embedding(50, 16), nn.Embedding(30, 16)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 2, 32, 0.0, batch_first=True), 1)
        self.head = nn.Linear(16, 50)

    def forward(self, source, ids):
        memory = self.source(source)
        hidden = self.decoder(self.words(ids) + self.places.weight[: ids.shape[1]], memory)
        return self.head(hidden)


model = Translator()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
source, target = torch.randint(0, 40, (8, 10)), torch.randint(0, 50, (8, 13))


def step(i=0):
    scores = model(source, target[:, :-1])
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), target[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
