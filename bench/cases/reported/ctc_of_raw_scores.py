"""ctc_loss gets raw scores where it expects logarithms of probabilities.

Fact: ctc_loss
Fact: logarithm
Line: aligned = F.ctc_loss(scores.transpose(0, 1), phones, frames, lengths)
Steps: 2
Report: gwx314/STARS#9, GitHub
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
encoder, to_phones, to_pitch = nn.GRU(20, 32, batch_first=True), nn.Linear(32, 14), nn.Linear(32, 1)
modules = nn.ModuleList([encoder, to_phones, to_pitch])
optimizer = torch.optim.AdamW(modules.parameters(), 1e-3)
mels, pitch = torch.randn(4, 40, 20), torch.rand(4, 40)
phones = torch.randint(1, 14, (4, 9))
frames, lengths = torch.full((4,), 40), torch.tensor([9, 7, 9, 5])


def step(i=0):
    hidden, _ = encoder(mels)
    scores = to_phones(hidden)
    aligned = F.ctc_loss(scores.transpose(0, 1), phones, frames, lengths)
    loss = aligned + F.l1_loss(to_pitch(hidden).squeeze(-1), pitch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
