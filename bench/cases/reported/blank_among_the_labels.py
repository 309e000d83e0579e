"""The letters are numbered from 0, which is also the blank of ctc_loss: the first letter can never be read.

Fact: ctc_loss
Fact: blank
Line: loss = F.ctc_loss(frames.transpose(0, 1), letters, lengths, sizes)
Steps: 2
Report: castorini/howl#47, GitHub
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
ALPHABET = "abcdefgh "
encoder = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, len(ALPHABET) + 1))
optimizer = torch.optim.Adam(encoder.parameters(), 1e-3)
words = ["bead", "cafe a", "gab", "face bag"]
sounds = torch.randn(len(words), 24, 13)
sizes = torch.tensor([len(word) for word in words])
letters = torch.tensor([ALPHABET.index(letter) for word in words for letter in word])
lengths = torch.full((len(words),), 24)


def step(i=0):
    frames = encoder(sounds).log_softmax(-1)
    loss = F.ctc_loss(frames.transpose(0, 1), letters, lengths, sizes)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
