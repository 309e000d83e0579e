"""Measures where torch itself is off, beside float64 on the same inputs: what opdiff calls wrong in correct models.

Errors are relative, of the norms. Each op runs by the kernel that torch takes and by another; what depends on the CPU
shows only on such a CPU.

Run from the repository root: `python bench/torch_inaccuracies.py`. Writes out/bench/torch_inaccuracies.md.
"""

from collections.abc import Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.harness.ratios import markdown

OUT = Path(__file__).parents[1] / "out" / "bench" / "torch_inaccuracies.md"
HEADER = ("op", "dtype", "size", "relative error", "of another kernel")
Row = tuple[str, str, str, str, str]


def main() -> None:
    torch.manual_seed(0)
    rows = [*grouped_convolutions(), *layer_norms()]
    about = f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, {torch.get_num_threads()} threads"
    text = f"# Where torch itself is off\n\n{about}.\n\n{markdown(HEADER, rows)}\n"
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text)
    print(text)


def relative_error(result: Tensor, exact: Tensor) -> float:
    return float((result.double() - exact).norm() / exact.norm())


def grouped_convolutions() -> Iterator[Row]:
    """The kernel of oneDNN for AMX, forward; the other one is torch's own."""
    for channels, groups, kernel in ((32, 4, 16), (48, 4, 8), (128, 16, 128), (32, 2, 16), (64, 4, 16)):
        width = channels // groups
        x = torch.randn(2, channels, 49).bfloat16()
        weight = (torch.randn(channels, width, kernel) / (width * kernel) ** 0.5).bfloat16()

        def convolved(x: Tensor, weight: Tensor, padding: int = kernel // 2, groups: int = groups) -> Tensor:
            return F.conv1d(x, weight, padding=padding, groups=groups)

        with torch.backends.mkldnn.flags(enabled=False):
            exact, other = convolved(x.double(), weight.double()), convolved(x, weight)
        error = relative_error(convolved(x, weight), exact)
        size = f"{groups} groups of {width} channels, kernel {kernel}"
        yield "aten.convolution", "bfloat16", size, f"{error:.2%}", f"{relative_error(other, exact):.2%}"


def layer_norms() -> Iterator[Row]:
    """Gradients of weight and bias, which torch sums in the dtype of the weight."""
    for count in (100, 1_500, 20_000):
        x, upper = torch.randn(count, 32).bfloat16(), torch.randn(count, 32).bfloat16()

        def gradient(dtype: torch.dtype, x: Tensor = x, upper: Tensor = upper) -> Tensor:
            weight = torch.ones(32, dtype=dtype, requires_grad=True)
            F.layer_norm(x.to(dtype), (32,), weight, torch.zeros(32, dtype=dtype)).backward(upper.to(dtype))
            assert weight.grad is not None
            return weight.grad

        exact = gradient(torch.float64)
        errors = [relative_error(gradient(dtype), exact) for dtype in (torch.bfloat16, torch.float32)]
        size = f"weight, over {count:,} rows"
        yield "aten.native_layer_norm_backward", "bfloat16", size, f"{errors[0]:.2%}", f"float32: {errors[1]:.0e}"


if __name__ == "__main__":
    main()
