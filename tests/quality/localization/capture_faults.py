"""Faults while a model is loaded: in what `torch.export` captures, what is traced, and what TensorFlow freezes.

The converter itself runs, with its step replaced by one that changes a node of what the step gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tests.quality.localization.bench import SHOWS, Bench, Fault
from tests.quality.localization.truth import before, source_nodes
from tests.quality.seeded_faults.fault import replaced
from trueport.core.taxonomy import Stage

TRIES = 2
"""Nodes that are tried for each mutator before the next one is."""


@dataclass(frozen=True)
class Site:
    """Where something of a program can be changed.

    Attributes:
        operator: what it is.
        node: name of the node in a run of the checkpoint.
        value: that the node makes there.
        plant: context in which it is wrong.
    """

    operator: str
    node: str
    value: str
    plant: Callable[[], AbstractContextManager[Any]]


Sites = Callable[[Bench, int, str, int], list[Site]]
"""(bench, number of the checkpoint, mutator, seed) -> where the mutator fits."""


def load_faults(bench: Bench, seed: int) -> Iterator[Fault]:
    """Yields faults that show in an output, each of another mutator, until no mutator is left."""
    rng = np.random.default_rng([seed, 0x6C6F])
    starts = [i for i, c in enumerate(bench.recorded) if c.stage is Stage.LOAD_MODEL]
    start = starts[seed % len(starts)]
    mutators, sites = _kind(bench.converter)
    source, converted = bench.source_before(start), bench.run_of(bench.recorded[start])
    for mutator in rng.permutation(sorted(mutators)):
        found = [s for s in sites(bench, start, str(mutator), seed) if s.value not in converted.constants]
        for place in rng.permutation(len(found))[:TRIES]:
            site = found[place]
            truth = source_nodes(source, converted, site.value)
            if truth and _shows(bench, start, site):
                yield Fault(
                    Stage.LOAD_MODEL, str(mutator), site.operator, site.node, truth, before(source, truth),
                    plant=site.plant,
                )  # fmt: skip
                break


def _shows(bench: Bench, start: int, site: Site) -> bool:
    try:
        with site.plant():
            wrong = bench.converted(start)
    except Exception:  # noqa: BLE001 - a fault that stops the converter is a crash, which is not measured here
        return False
    return len(wrong) > start and bench.change(wrong[start].executable, start) > SHOWS


def _kind(converter: str) -> tuple[Any, Sites]:
    if converter == "torch-dynamo":
        from tests.quality.localization import fx_mutators

        return fx_mutators.MUTATORS, dynamo_sites
    if converter == "torch-script":
        from tests.quality.localization import script_mutators

        return script_mutators.MUTATORS, script_mutators.sites
    from tests.quality.localization import tensorflow_mutators

    return tensorflow_mutators.MUTATORS, tensorflow_mutators.sites


def dynamo_sites(bench: Bench, number: int, mutator: str, seed: int) -> list[Site]:
    """Returns the nodes of the captured program (number 0) or of the decomposed one that a mutator fits."""
    from tests.quality.localization import fx_mutators

    program: Any = getattr(bench.recorded[number].executable, "_program")  # noqa: B009 - what the checkpoint runs
    values = {n.name: n.outputs[0] for n in bench.run_of(bench.recorded[number]).nodes}
    return [
        Site(str(node.target), node.name, values[node.name],
             partial(_capturing if number == 0 else _decomposing, node.name, mutator, seed))
        for node in program.graph.nodes
        if node.name in values and fx_mutators.fits(node, mutator, seed)
    ]  # fmt: skip


def _capturing(name: str, mutator: str, seed: int) -> AbstractContextManager[None]:
    from tests.quality.localization.fx_mutators import mutate
    from trueport.adapters.converters import torch_dynamo

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def capture(*args: Any) -> Any:
            program, shapes = original(*args)
            mutate(program.graph_module, name, mutator, seed)
            return program, shapes

        return capture

    return replaced(torch_dynamo, "_capture", wrap)


def _decomposing(name: str, mutator: str, seed: int) -> AbstractContextManager[None]:
    from tests.quality.localization.fx_mutators import mutate
    from trueport.adapters.converters.torch_dynamo import _core

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def prepare(*args: Any, **kwargs: Any) -> Any:
            program = original(*args, **kwargs)
            mutate(program.graph_module, name, mutator, seed)
            return program

        return prepare

    return replaced(_core, "_prepare_exported_program_for_export", wrap)
