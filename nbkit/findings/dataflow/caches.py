"""Rule about caches: memory that cat() copies whole to make it longer by a little, again and again."""

from collections.abc import Iterator

from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.dataflow.found import Found

# So often, that the copies are more than a hundred times the cache.
FEWEST = 32
ADVICE = "Make the cache once with room for all tokens (torch.empty), and write each into its place."


def growing_cat(flow: Flow) -> Iterator[Found]:
    """Finds chains of cat() that each copy the result of the one before, and add a small part to it."""
    chains: dict[int, list[Op]] = {}  # by the cat() that is their last so far
    for op in flow.named("cat"):
        if not op.inputs or not op.outputs:
            continue
        adds_little = len(op.inputs) == 1 or op.inputs[0].numel * 2 >= op.outputs[0].numel
        before = flow.maker(op.inputs[0]) if adds_little else None
        chain = [] if before is None else chains.pop(before.op_id, [])
        chains[op.op_id] = [*chain, op]
    for chain in chains.values():
        if len(chain) >= FEWEST:
            yield _growing(chain)


def _growing(chain: list[Op]) -> Found:
    last = chain[-1].outputs[0]
    copied = sum(op.inputs[0].numel for op in chain) / max(last.numel, 1)
    message = (
        f"a chain of {len(chain)} calls of cat grows a tensor to {[*last.shape]} little by little, and copies "
        f"{copied:.0f} times what it holds at the end"
    )
    return Found("growing_cat", "hint", message, ADVICE, chain[0], {"cats": len(chain), "copied": copied})
