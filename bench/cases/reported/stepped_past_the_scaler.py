"""scaler.step(optimizer) is followed by optimizer.step(): each gradient is used twice, once past the scaler.

Fact: gradients
Fact: again
Line: optimizer.step()
Steps: 3
Report: IAHispano/Applio#860, GitHub
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
vocoder = nn.Sequential(nn.Conv1d(20, 32, 3, padding=1), nn.LeakyReLU(0.1), nn.Conv1d(32, 4, 3, padding=1))
optimizer = torch.optim.AdamW(vocoder.parameters(), 1e-4, betas=(0.8, 0.99))
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
spectra, waves = torch.randn(6, 20, 30), torch.randn(6, 4, 30)


def step(i=0):
    with torch.autocast("cpu", torch.bfloat16):
        loss = F.l1_loss(vocoder(spectra).float(), waves)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    optimizer.step()
    scaler.update()
    return loss.item()


if __name__ == "__main__":
    for i in range(3):
        print(i, step(i))
