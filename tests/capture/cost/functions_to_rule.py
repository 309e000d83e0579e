"""Functions and a module that do not run on shapes, as kernels from outside torch do not."""

from torch import Tensor, nn


def scan(x: Tensor, decay: Tensor | None = None, *, chunk: int = 4) -> Tensor:
    """Returns sums along the last dimension."""
    if type(x.detach()) is not Tensor:
        raise RuntimeError("this kernel needs memory")
    return x.detach().cumsum(-1)


def pair(x: Tensor) -> dict[str, object]:
    raise RuntimeError("entered")


class Kernel(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError("entered")
