"""Each access standardizes the stored image itself once more, so that the data drift from epoch to epoch.

Fact: in place
Line: image.sub_(0.4).div_(0.5)
Steps: 4
Report: facebookresearch/pycls#21, GitHub
Missed: in-place changes of data that stay from step to step are not looked at
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Small(Dataset):
    def __init__(self):
        self.images, self.labels = torch.rand(24, 3, 8, 8), torch.randint(0, 3, (24,))

    def __len__(self):
        return 24

    def __getitem__(self, index):
        image = self.images[index]
        image.sub_(0.4).div_(0.5)
        return image, self.labels[index]


net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 3))
optimizer = torch.optim.SGD(net.parameters(), 0.01)
loader = DataLoader(Small(), batch_size=24, shuffle=True)


def step(i=0):
    for images, labels in loader:
        loss = nn.functional.cross_entropy(net(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(4):
        print(i, step(i))
