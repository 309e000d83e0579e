"""Watches parameters, gradients and optimizers while a step is recorded; adds `parameters` and `findings`."""

import gc
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import combinations, count, pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from nbkit.capture.audit.activations import ActivationAudit
from nbkit.capture.audit.averages import AverageAudit
from nbkit.capture.audit.measures import bits_of, has_plain_values
from nbkit.capture.audit.models import AuditedModel, Held, misnamed_freezes, unset_statistics
from nbkit.capture.audit.passes import with_op_ids
from nbkit.capture.audit.rows import parameters_frame
from nbkit.capture.audit.steps import OptimizerAudit
from nbkit.capture.audit.targets import TargetAudit
from nbkit.capture.frames.tensor_columns import TensorColumns
from nbkit.capture.frames.tensor_rows import tensor_ids
from nbkit.capture.raw.recording import Recording
from nbkit.capture.recorder.observer import Frames, Meta, Observer
from nbkit.capture.replay.isolated import isolated, timed_isolated
from nbkit.capture.step.module_calls import ModuleCalls
from nbkit.findings.finding import line_texts, with_findings
from nbkit.findings.training.facts import Audit, Average, Copy, History, Hooks, Misnamed
from nbkit.findings.training.over_steps.accumulation import Met, accumulations
from nbkit.findings.training.rules import audit_findings
from nbkit.trace.trace import Trace

# Fewer, or all the same, are equal by chance: biases and norms begin so.
FEWEST = 16


class AuditObserver(Observer):
    """Follows the models and optimizers given, else those that run.

    `has_steps` says that optimizers step elsewhere in the steps of which some are recorded.
    """

    def __init__(self, models: Sequence[nn.Module], optimizers: Sequence[Any], *, has_steps: bool = False) -> None:
        self.has_steps = has_steps
        self.given = tuple(models)
        self.given_optimizers = tuple(optimizers)
        self.audited: list[AuditedModel] = []

    def below(self, recording: Recording, modules: ModuleCalls) -> AbstractContextManager[object]:
        self.recording, self.modules = recording, modules
        self.optimizers = OptimizerAudit(recording, self.audited, self.given_optimizers)
        self.activations = ActivationAudit(recording, modules.api)
        self.targets = TargetAudit(recording, modules.api)
        self.written = AverageAudit(recording, modules.api, self.audited)
        return self._watching()

    @contextmanager
    def _watching(self) -> Iterator[None]:
        for model in self.given:
            self._meet(model)
        if not self.given:
            self.modules.roots.on_new = self._meet
        self.given = self.given_optimizers = ()  # the recording keeps no model alive
        self.optimizers.install()
        self.activations.install()
        self.targets.install()
        self.written.install()
        try:
            yield
        finally:
            self.activations.remove()
            self.optimizers.remove()
            self.modules.roots.on_new = None

    def _meet(self, model: nn.Module) -> None:
        timed_isolated(self.recording, lambda: self._copy(model), self._trouble)

    def _copy(self, model: nn.Module) -> None:
        known = {id(held.tensor) for audited in self.audited for held in audited.held()}
        self.audited.append(AuditedModel(model, known, self.recording.main.module_call >= 0))

    def _trouble(self, error: Exception) -> None:
        self.recording.skip(f"models not audited ({type(error).__name__})")

    def frames(self, trace: Trace, ops: pd.DataFrame, op_ids: np.ndarray) -> tuple[Frames, Meta]:
        with isolated():
            self.met_activations = self.activations.activations(op_ids)
            self.met_targets, self.blanks, self.padded = self.targets.targets(op_ids)
            self.averages = self._averages(op_ids, ops)
            self.repeated_draws = self.optimizers.draws.ops(op_ids)
            self.passes = with_op_ids(self.optimizers.passes.noted, op_ids)
            self.closed = with_op_ids(self.optimizers.checkpoints.noted, op_ids)
        return {}, {}

    def completed(self, frames: Frames, meta: Meta) -> tuple[Frames, Meta]:
        ops, tensors = frames["ops"], frames["tensors"]
        with isolated():
            self.optimizers.note_idle()
            labels = self._labels()
            copies = self._copies(labels)
            added = accumulations(self._met(labels), ops, tensors)
            accumulated = self._accumulated({(one.model, one.name) for one in added}, labels)
            calls = self._calls()
            parameters = parameters_frame(self.audited, labels, calls, bool(self.optimizers.known), accumulated)
        pairs = [*zip(self.audited, labels, strict=True)]
        audit = Audit(
            parameters=parameters,
            ops=ops,
            tensors=tensors,
            modules=frames["modules"],
            texts=line_texts(frames["lines"]) | {one.source: one.text for one in self.closed},
            modes=self._modes(),
            skips=self.optimizers.skips,
            accumulations=added,
            activations=self.met_activations,
            inner=frozenset(label for model, label in pairs if model.is_inner),
            steps=self.optimizers.steps,
            idle_steps=self.optimizers.idle_steps,
            has_steps=self.has_steps,
            optimizers=tuple(self.optimizers.stepped.values()),
            made=tuple(self.optimizers.makings.noted.values()),
            clips=tuple(self.optimizers.clips.noted),
            copies=copies,
            histories=self._histories(labels),
            alive=self._alive(),
            unset_statistics=self._unset(labels),
            repeated_draws=self.repeated_draws,
            passes=self.passes,
            closed=self.closed,
            schedules=self.optimizers.schedules.schedules(),
            stale_casts=self._stale(labels),
            averages=self.averages,
            targets=self.met_targets,
            **self._noted(labels, ops, tensors),
            error=(meta.get("error") or {}).get("message"),
            hooks=[Hooks(label, *one) for model, label in pairs for one in model.hooks.items()],
            bypassed=frozenset(label for model, label in pairs if is_bypassed(model.model(), calls)),
            autocast_source=self.optimizers.stale.source,
        )
        meta = {**meta, "optimizer_steps": self.optimizers.steps, "skipped_steps": len(self.optimizers.skips)}
        if unheld := self.optimizers.unheld - {id(held.tensor) for _, held in self.optimizers.parameters()}:
            meta["unaudited_parameters"] = len(unheld)
        return with_findings({**frames, "parameters": parameters}, audit_findings(audit)), meta

    def _accumulated(self, added: Container[tuple[str, str]], labels: Sequence[str]) -> dict[tuple[int, str], bool]:
        """Returns of each parameter that was updated, by number of the model and name, whether its gradient was."""
        return {
            (number, name): (labels[number], name) in added
            for number, model in enumerate(self.audited)
            for name, followed in model.followed.items()
            if followed.updates
        }

    def _labels(self) -> list[str]:
        """Returns the names of the audited models as in the other frames; of one that did not run itself the class.

        Where that is the name of another one, a number follows it.
        """
        names = dict(zip((id(root.module()) for root in self.modules.roots.roots), self._roots(), strict=True))
        labels, taken = list[str](), {*names.values()}
        for model in self.audited:
            known = names.get(id(model.model()))
            numbered = (f"{model.type}#{number}" if number > 1 else model.type for number in count(1))
            labels.append(known or next(label for label in numbered if label not in taken))
            taken.add(labels[-1])
        return labels

    def _roots(self) -> list[str]:
        return self.modules.roots.labels()

    def _calls(self) -> dict[int, int]:
        calls: dict[int, int] = {}
        for called in self.modules.called:
            module = called.module()
            if module is not None:
                calls[id(module)] = calls.get(id(module), 0) + called.calls
        return calls

    def _modes(self) -> dict[tuple[str, str, int], bool]:
        """Returns whether each module call was in training mode, by (model, module, module_call)."""
        roots, called = self._roots(), self.modules.called
        return {
            (roots[called[number].root], called[number].path, call): bool(training)
            for number, call, _, training in self.recording.module_calls
        }

    def _met(self, labels: Sequence[str]) -> Iterator[Met]:
        """Yields how the steps met each parameter that has an optimizer."""
        for model, label in zip(self.audited, labels, strict=True):
            for name, followed in model.followed.items():
                done = [update for update in followed.updates if update.is_done]
                if done and not any(update.has_closure for update in done):
                    met = [(update.step, update.storage) for update in done]
                    yield Met(label, name, met, followed.met_earlier and followed.updates[0].is_done)

    def _noted(self, labels: Sequence[str], ops: pd.DataFrame, tensors: pd.DataFrame) -> dict[str, Any]:
        """Returns further facts of an Audit, by name."""
        pairs = zip(self.audited, labels, strict=True)
        misnamed = [Misnamed(label, *one) for model, label in pairs for one in misnamed_freezes(model)]
        foreign = accumulations(self._foreign(labels), ops, tensors)
        again = self.optimizers.again
        return {"blanks": self.blanks, "padded": self.padded, "again": again, "misnamed": misnamed, "foreign": foreign}

    def _foreign(self, labels: Sequence[str]) -> Iterator[Met]:
        """Yields each step of another optimizer that left a parameter a gradient, with its own step that came next."""
        for model, label in zip(self.audited, labels, strict=True):
            for name, followed in model.followed.items():
                own = [(one.step, one.storage) for one in followed.updates if one.is_done and not one.has_closure]
                for before, after in pairwise([(-1, None), *own]):
                    between = [one for one in followed.foreign if before[0] < one[0] < after[0]]
                    if between:
                        yield Met(label, name, [between[-1], after], is_earlier=False)

    def _copies(self, labels: Sequence[str]) -> list[Copy]:
        try:
            return parted_copies(self.audited, labels)
        except Exception as error:  # values of other devices or kinds
            self.recording.skip(f"copies of parameters not looked at ({type(error).__name__})")
            return []

    def _alive(self) -> frozenset[int]:
        """Returns the tensor_ids of tensors that are still there, and require a gradient."""
        registry = self.recording.registry
        ids = tensor_ids(TensorColumns(registry))
        return frozenset(int(ids[number]) for number, needs in registry.survivors().items() if needs)

    def _unset(self, labels: Sequence[str]) -> frozenset[tuple[str, str]]:
        pairs = zip(self.audited, labels, strict=True)
        return frozenset((label, module) for model, label in pairs for module in unset_statistics(model))

    def _averages(self, op_ids: np.ndarray, ops: pd.DataFrame) -> list[Average]:
        labels = self._labels()
        pairs = [
            (label, model, held) for label, model in zip(labels, self.audited, strict=True) for held in model.held()
        ]
        weights = [(label, held) for label, model, held in pairs if model.of(held.name).updates]
        try:
            return self.written.averages(op_ids, ops["step"].to_numpy(), weights)
        except Exception as error:  # values of other devices or kinds
            self.recording.skip(f"averages not looked at ({type(error).__name__})")
            return []

    def _stale(self, labels: Sequence[str]) -> list[tuple[str, str]]:
        held = [(label, one) for model, label in zip(self.audited, labels, strict=True) for one in model.held()]
        return [(label, one.name) for label, one in held if id(one.tensor) in self.optimizers.stale.noted]

    def _histories(self, labels: Sequence[str]) -> dict[tuple[str, str], History]:
        done = {
            (label, name): [update for update in followed.updates if update.is_done]
            for model, label in zip(self.audited, labels, strict=True)
            for name, followed in model.followed.items()
        }
        return {
            key: History(tuple(one.rate for one in updates), tuple(one.has_gradient for one in updates))
            for key, updates in done.items()
            if updates
        }

    def forget(self) -> None:
        self.audited.clear()  # others hold the list
        vars(self).clear()


def is_bypassed(model: nn.Module | None, calls: Mapping[int, int]) -> bool:
    """Returns whether the model in a DistributedDataParallel of several ranks was called, and that never.

    `model` is either of them; `calls` counts those of modules by id.
    """
    if model is None or not (distributed.is_available() and distributed.is_initialized()):
        return False
    wrappers = [one for one in gc.get_objects() if type(one) is DistributedDataParallel and model in (one, one.module)]
    several = [one for one in wrappers if distributed.get_world_size(one.process_group) > 1]
    return any(calls.get(id(one.module)) and not calls.get(id(one)) for one in several)


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
