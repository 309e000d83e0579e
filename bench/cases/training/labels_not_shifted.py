"""A causal transformer is trained on its own input, not on the next token.

Fact: unshifted_targets
Line: loss = F.cross_entropy(model(ids).transpose(1, 2), ids)
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Decoder(torch.nn.Module):
    def __init__(self, vocabulary=50, width=32):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        self.head = torch.nn.Linear(width, vocabulary)

    def forward(self, ids):
        x = self.embedding(ids)
        q, k, v = self.qkv(x).chunk(3, -1)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True))
        return self.head(x)


model = Decoder()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
ids = torch.randint(0, 50, (8, 24))


def step(i=0):
    loss = F.cross_entropy(model(ids).transpose(1, 2), ids)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(20):
        print(i, step(i))
