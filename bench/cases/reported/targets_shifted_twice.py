"""The labels are shifted by the script and once more in the loss: each position predicts the token after the next.

Fact: shifted
Line: return F.cross_entropy(scores[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
Steps: 2
Report: huggingface/transformers#47394, GitHub
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Captions(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(80, 24), nn.Embedding(20, 24)
        self.layer, self.head = nn.TransformerEncoderLayer(24, 4, 48, 0.0, batch_first=True), nn.Linear(24, 80)

    def forward(self, ids, labels):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        hidden = self.words(ids) + self.places.weight[: ids.shape[1]]
        return causal_loss(self.head(self.layer(hidden, mask, is_causal=True)), labels)


def causal_loss(scores, labels):
    return F.cross_entropy(scores[:, :-1].flatten(0, 1), labels[:, 1:].flatten())


model = Captions()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
texts = torch.randint(0, 80, (6, 14))


def step(i=0):
    loss = model(texts[:, :-1], texts[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
