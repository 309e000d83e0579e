"""Each worker is seeded alike: all batches get the same random crops and noise.

Fact: same random numbers
Line: return image + 0.3 * torch.randn_like(image)
Report: Stack Overflow 67180955
"""

import torch
import torch.nn.functional as F

net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 5))
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
images, labels = torch.rand(30, 16, 8, 8), torch.randint(0, 5, (30, 16))


def augmented(image):
    return image + 0.3 * torch.randn_like(image)


def worker(index):
    torch.manual_seed(1234)  # each worker begins as the one before
    return augmented(images[index]), labels[index]


def step(i=0):
    x, y = worker(i)
    loss = F.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
