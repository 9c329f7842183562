"""Which faults are measured: architectures, converters, stages and seeds by key; benches are made once and kept."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from tests.quality.localization.bench import Bench, Fault, Outcome
from tests.quality.localization.capture_faults import load_faults
from tests.quality.localization.onnx_faults import onnx_faults
from trueport.adapters.sources import load_subject
from trueport.adapters.sources.registry import SourceRequest
from trueport.core.subject import Subject
from trueport.core.taxonomy import Stage

EXPORTED = "exported:"
"""Before the name of a model of the zoo: its ONNX file, as the TorchScript exporter makes it."""
_TORCH = (Stage.LOAD_MODEL, Stage.NODE_CONVERSION, Stage.OPTIMIZATION, Stage.EXPORT)
_ONNX = (Stage.LOAD_MODEL, Stage.OPTIMIZATION, Stage.EXPORT)
BENCHES: tuple[tuple[str, str], ...] = (
    ("zoo:hf/distilbert", "torch-dynamo"),
    ("zoo:hf/distilbert", "torch-script"),
    ("zoo:keras/mlp", "tf2onnx"),
    (f"{EXPORTED}zoo:hf/distilbert", "onnxscript-optimizer"),
    ("zoo:hf/resnet", "torch-dynamo"),
    ("zoo:hf/resnet", "torch-script"),
    ("zoo:keras/text-cnn", "tf2onnx"),
    (f"{EXPORTED}zoo:hf/resnet", "onnxscript-optimizer"),
    ("zoo:hf/vit", "torch-script"),
    ("zoo:keras/attention-pooling", "tf2onnx"),
)
"""Models that are converted rightly where no fault is planted: gpt2 and llama have a fault of the exporter already."""
PER_STAGE = 3
"""Faults of each stage of each bench; the fixed sample has the first of each."""


@dataclass(frozen=True)
class Key:
    """One fault."""

    model: str
    converter: str
    stage: Stage
    number: int

    def __str__(self) -> str:
        return f"{self.model}|{self.converter}|{self.stage}|{self.number}"

    @classmethod
    def parse(cls, text: str) -> Key:
        """Returns the key that was written as a text."""
        model, converter, stage, number = text.split("|")
        return cls(model, converter, Stage(stage), int(number))


def stages(model: str) -> tuple[Stage, ...]:
    """Returns the stages of the model's converter."""
    return _ONNX if model.startswith(EXPORTED) else _TORCH


def keys(per_stage: int = PER_STAGE) -> Iterator[Key]:
    """Yields the keys, first one fault of each stage of each bench, then the second ones."""
    for model, converter in BENCHES:
        for stage in stages(model):
            for number in range(per_stage):
                yield Key(model, converter, stage, number)


def faults(bench: Bench, stage: Stage, number: int) -> list[Fault]:
    """Returns the fault of this number, of another mutator than those before it.

    An empty list where the architecture has not so many.
    """
    chosen = bench.chosen.setdefault(stage, [])
    while len(chosen) <= number:
        used = {f.mutator for f in chosen}
        found = _stream(bench, stage, len(chosen))
        first = next((f for f in found if f.mutator not in used), None)
        if first is None:
            return []
        chosen.append(first)
    return [chosen[number]]


def _stream(bench: Bench, stage: Stage, seed: int) -> Iterator[Fault]:
    live = stage is Stage.LOAD_MODEL and not bench.converter.startswith("onnx")
    return load_faults(bench, seed) if live else onnx_faults(bench, stage, seed)


def pair(bench: Bench, stage: Stage, number: int) -> list[Fault]:
    """Returns two faults of other nodes in one model, of one checkpoint."""
    found: list[Fault] = []
    for fault in onnx_faults(bench, stage, number):
        if not any(fault.truth & f.truth or fault.node == f.node for f in found):
            found.append(fault)
        if len(found) == 2:
            return found
    return []


def measure_key(key: Key) -> tuple[list[Fault], Outcome | None]:
    """Returns the planted fault and what a check says; None where the architecture has no such fault."""
    bench = bench_of(key.model, key.converter)
    planted = faults(bench, key.stage, key.number)
    return planted, bench.judge(planted) if planted else None


@lru_cache(maxsize=3)
def bench_of(model: str, converter: str) -> Bench:
    """Returns the bench; the last three are kept."""
    return Bench(_subject(model), converter, Path(tempfile.mkdtemp(prefix="localization-")))


def _subject(model: str) -> Subject:
    if not model.startswith(EXPORTED):
        return load_subject(model)
    from trueport.adapters.sources.onnx_subject import subject_of_onnx

    name = model.removeprefix(EXPORTED)
    exported = bench_of(name, "torch-script")
    made = exported.recorded[-1].model
    assert made is not None
    feeds = dict(zip(exported.session.names, (np.asarray(a) for a in exported.inputs.arrays), strict=True))
    request = SourceRequest(name, trust_pickle=False, inputs=None, input_shapes={}, seed=0)
    return subject_of_onnx(made, feeds, name=name, sha256="", request=request)
