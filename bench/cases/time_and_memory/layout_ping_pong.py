"""The model is channels_last; a squeeze-and-excite block copies its input into NCHW and back in each stage.

Fact: layout
Line: scale = torch.sigmoid(self.fc(x.contiguous().view(b, c, -1).mean(-1)))
"""

import torch

torch.manual_seed(0)


class Excite(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.fc = torch.nn.Linear(channels, channels)

    def forward(self, x):
        b, c, _, _ = x.shape
        scale = torch.sigmoid(self.fc(x.contiguous().view(b, c, -1).mean(-1)))
        return x * scale[:, :, None, None]


parts = [part for _ in range(6) for part in (torch.nn.Conv2d(16, 16, 1), torch.nn.ReLU(), Excite(16))]
net = torch.nn.Sequential(*parts).to(memory_format=torch.channels_last).eval()
inputs = torch.randn(8, 16, 64, 64).to(memory_format=torch.channels_last)


def step(i=0):
    with torch.no_grad():
        return net(inputs).abs().mean().item()


if __name__ == "__main__":
    print(step())
