"""Times torch's CPU kernels on subnormal numbers beside normal ones, and a step of Adam: `python -m bench.subnormals`.

That is what the hint `subnormal_state` of optime says of an optimizer; how much it is hangs on the CPU. One minute.
"""

from collections.abc import Callable
from time import perf_counter

import torch

ELEMENTS, ROUNDS = 1 << 17, 20
OPS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sqrt": torch.sqrt, "div": lambda x: x / 3, "mul": lambda x: x * 0.9, "add": lambda x: x + x
}  # fmt: skip


def least_us(work: Callable[[], object]) -> float:
    work()
    times = []
    for _ in range(ROUNDS):
        began = perf_counter()
        work()
        times.append(perf_counter() - began)
    return 1e6 * min(times)


def ratios(dtype: torch.dtype, share: float) -> str:
    """Returns how many times as long each op takes where so many of the elements are subnormal."""
    usual = torch.ones(ELEMENTS, dtype=dtype)
    small = torch.full_like(usual, torch.finfo(dtype).smallest_normal / 100)
    mixed = torch.where(torch.rand(ELEMENTS, generator=torch.Generator().manual_seed(0)) < share, small, usual)
    found = {name: least_us(lambda op=op: op(mixed)) / least_us(lambda op=op: op(usual)) for name, op in OPS.items()}
    return ", ".join(f"{name} {ratio:.1f}" for name, ratio in found.items())


def adam_us(scale: float, **how: bool) -> float:
    parameter = torch.ones(512, 256, requires_grad=True)
    parameter.grad = torch.full_like(parameter, scale)
    return least_us(torch.optim.Adam([parameter], **how).step)


def main() -> None:
    torch.set_num_threads(1)
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        for share in (0.001, 0.01, 0.1, 1.0):
            print(f"{str(dtype).removeprefix('torch.')}, {share:.1%} subnormal, times as long: {ratios(dtype, share)}")
    for how in ({}, {"foreach": True}, {"fused": True}):
        usual, small = adam_us(1.0, **how), adam_us(1e-20, **how)
        print(f"Adam({how}): {usual:.0f} us, {small:.0f} us with gradients of 1e-20")
    if torch.set_flush_denormal(True):
        print(f"Adam(), flushed: {adam_us(1e-20):.0f} us with gradients of 1e-20")


if __name__ == "__main__":
    main()
