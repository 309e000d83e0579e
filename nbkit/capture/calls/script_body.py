"""Holds the part of the script that is the same for every op: it runs the op twice and prints what differs."""

BODY = '''
WIDER = {torch.float16: 0, torch.bfloat16: 0, torch.float32: 0, torch.complex32: 1, torch.complex64: 1}
WIDER |= {getattr(torch, name): 0 for name in dir(torch) if name.startswith("float8") or name.startswith("float4")}


def changed(value, device, wide):
    """Copies an argument to a device; in `wide`, a floating-point and a complex dtype, if there is one."""
    if isinstance(value, torch.Tensor):
        dtype = wide[WIDER[value.dtype]] if wide and value.dtype in WIDER else value.dtype
        return torch.empty_like(value, device=device, dtype=dtype).copy_(value)
    if isinstance(value, torch.dtype):
        return wide[WIDER[value]] if wide and value in WIDER else value
    if isinstance(value, torch.device):
        return torch.device(device)
    return [changed(item, device, wide) for item in value] if isinstance(value, list) else value


def flat(value):
    return [leaf for item in value for leaf in flat(item)] if isinstance(value, list | tuple) else [value]


def run(device, wide=None):
    """Returns what the op returns and writes to, on the CPU."""
    copies = {id(tensor): changed(tensor, device, wide) for tensor in TENSORS}

    def converted(value):
        if isinstance(value, torch.Tensor):
            return copies[id(value)]
        return [converted(item) for item in value] if isinstance(value, list) else changed(value, device, wide)

    args, kwargs = [converted(arg) for arg in ARGS], {name: converted(arg) for name, arg in KWARGS.items()}
    with torch.no_grad():
        out = OP(*args, **kwargs)
    results = [item for item in flat(out) if isinstance(item, torch.Tensor)][:VALUES]
    written = [args[position] for position in WRITTEN[0] if position < len(args)]
    written += [kwargs[name] for name in WRITTEN[1] if name in kwargs]
    tensors = [item for item in flat(written) if isinstance(item, torch.Tensor)]
    results += [tensor for tensor in tensors if not any(tensor is result for result in results)]
    return [result.detach().cpu() for result in results]


def reference():
    for wide in ((torch.float64, torch.complex128), (torch.float32, torch.complex64)):
        try:
            return run("cpu", wide), str(wide[0])[6:]
        except RuntimeError as error:
            trouble = error
    raise trouble


def difference(actual, expected):
    """|actual - expected|: 0 where both are NaN or the same Inf, NaN where only one is NaN."""
    kind = torch.complex128 if actual.is_complex() else torch.float64
    actual, expected = actual.to(kind), expected.to(kind)
    largest = torch.finfo(RESULT_DTYPE).max if RESULT_DTYPE.is_floating_point else float("inf")
    same = (actual == expected) | (actual.isnan() & expected.isnan())
    same |= actual.isinf() & (expected.abs() > largest) & (actual.real.sign() == expected.real.sign())
    return torch.where(same, 0.0, (actual - expected).abs())


try:
    torch.empty(0, device=DEVICE)
except Exception as error:
    print(f"{DEVICE} is not here ({str(error).splitlines()[0]}): the op runs on the CPU in its own dtype.")
    DEVICE = "cpu"

def tried(run, where):
    try:
        return run()
    except RuntimeError as error:
        print(f"{OP} does not run on {where}: {str(error).splitlines()[0]}")


actual_results = tried(lambda: run(DEVICE), DEVICE)
expected_results, precision = tried(reference, "cpu") or (None, "")
if actual_results is None or expected_results is None:
    print(f"There is nothing to compare. On {DEVICE}: {actual_results}\\nOn cpu: {expected_results}")
    RECORDED = []
for position, name, recorded in RECORDED:
    actual, expected = actual_results[position], expected_results[position]
    RESULT_DTYPE = actual.dtype
    print(f"{name} on {DEVICE}, {actual.dtype}:\\n{actual}\\n{name} on cpu, {precision}:\\n{expected}")
    if actual.shape != expected.shape:
        print(f"shape {list(actual.shape)}, expected {list(expected.shape)}")
        continue
    errors = difference(actual, expected).reshape(-1)
    worst = int(torch.where(errors.isnan(), float("inf"), errors).argmax()) if len(errors) else 0
    error = float(errors[worst]) if len(errors) else 0.0
    index = [int(i) for i in torch.unravel_index(torch.tensor(worst), actual.shape)] if len(errors) else []
    print(f"largest difference: {error:.9g} at {index}")
    if recorded is None:
        continue
    is_same = error != error if recorded != recorded else recorded / 2 <= error <= 2 * recorded
    if is_same:
        print(f"That is what the trace says ({recorded:.9g}).")
    else:
        print(f"NOT REPRODUCED: the trace says {recorded:.9g}. Alone, in this process, the op does not do it again: "
              "the fault needs its device, the calls before it, or what ran beside it.")
'''
