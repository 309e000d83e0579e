"""All rows of the embedding but the new one get no gradient, and AdamW's weight decay shrinks them all the same.

Fact: decay
Where: tokens
Steps: 4
Report: huggingface/diffusers#1009, GitHub
Missed: gradients that a script sets to 0 in part are not told, nor what still moves there
"""

import torch
from torch import nn

torch.manual_seed(0)


class TextEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.mix = nn.Embedding(400, 16), nn.GRU(16, 16, batch_first=True)

    def forward(self, ids):
        return self.mix(self.tokens(ids))[0][:, -1]


encoder, denoiser = TextEncoder(), nn.Linear(32, 16).requires_grad_(False)
encoder.mix.requires_grad_(False)
optimizer = torch.optim.AdamW(encoder.tokens.parameters(), 5e-3, weight_decay=1e-2)
prompts, latents = torch.randint(0, 399, (8, 6)), torch.randn(8, 16)
prompts[:, 3] = 399


def step(i=0):
    noise = torch.randn(8, 16)
    predicted = denoiser(torch.cat((latents + noise, encoder(prompts)), -1))
    loss = nn.functional.mse_loss(predicted, noise)
    optimizer.zero_grad()
    loss.backward()
    encoder.tokens.weight.grad[:399] = 0
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(4):
        print(i, step(i))
