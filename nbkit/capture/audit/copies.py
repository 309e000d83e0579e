"""Finds trained parameters that had equal values when the recording began, and have not at its end."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nbkit.capture.audit.measures import bits_of, has_plain_values
from nbkit.capture.audit.models import AuditedModel, Held
from nbkit.findings.training.facts import Copy

# Fewer, or all the same, are equal by chance: biases and norms begin so.
FEWEST = 16


class Candidate(NamedTuple):
    """Describes a parameter that an optimizer updated."""

    number: int  # of its model
    held: Held
    before: Tensor


def parted_copies(models: Sequence[AuditedModel], labels: Sequence[str]) -> list[Copy]:
    """Returns pairs of parameters that were copies of each other and are not any more.

    Of one model those of an embedding and a linear layer, of two models those of the same name: clones of a layer,
    as torch makes them, are to part.
    """
    found = []
    for one, other in combinations(_candidates(models), 2):
        is_pair = one.held.name == other.held.name if one.number != other.number else _may_be_tied(one, other)
        if is_pair and _equal(one.before, other.before) and not _equal(one.held.tensor, other.held.tensor):
            found.append(Copy(labels[one.number], one.held.name, labels[other.number], other.held.name))
    return found


def _candidates(models: Sequence[AuditedModel]) -> Iterator[Candidate]:
    for number, model in enumerate(models):
        for held in model.held():
            before, followed = model.before.get(held.name), model.followed.get(held.name)
            if held.kind != "parameter" or held.tied_with is not None or before is None or followed is None:
                continue
            is_trained = any(update.is_done and update.has_gradient for update in followed.updates)
            is_chance = before.numel() < FEWEST or bool((before == before.flatten()[0]).all())
            if is_trained and not is_chance and has_plain_values(held.tensor):
                yield Candidate(number, held, before)


def _may_be_tied(one: Candidate, other: Candidate) -> bool:
    kinds = {type(one.held.owner), type(other.held.owner)}
    return kinds == {nn.Embedding, nn.Linear}


def _equal(one: Tensor, other: Tensor) -> bool:
    alike = one.shape == other.shape and one.dtype == other.dtype and one.device == other.device
    return alike and torch.equal(bits_of(one.detach()), bits_of(other.detach()))
