"""Right models of the oracle's cases, exported once, as ONNX sources: run as they are, optimized, and mutated.

No right road is called divergent, every optimized file is faithful, and no file with a weight off by a thousandth is.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper
from torch.utils import _pytree as pytree

from tests.quality.judging import told
from tests.quality.oracle_cases import CASES
from trueport.api.session import Session
from trueport.core.options import CheckOptions
from trueport.core.result import Check
from trueport.core.subject import Example, Subject
from trueport.core.taxonomy import Stage, Verdict

NAMES = [
    "mlp", "exp-of-30x", "sine-of-100000x", "transformer-layer", "standardize-at-1000", "cumulative-sum-of-100000",
    "variance-at-10000", "group-norm-at-500", "bilinear-interpolation", "float16-block", "layer-norm-written-out",
    "amplifying-recurrence", "gpt2", "vit", "llama", "t5-encoder", "resnet", "lstm",
]  # fmt: skip
"""Ill-conditioned ones, those that hang on decisions, and real architectures."""
WEIGHTED = ["mlp", "transformer-layer", "gpt2", "vit", "llama", "resnet"]
OPTIMIZERS = ("onnxscript-optimizer", "onnxsim", "onnxslim", "onnxoptimizer")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Returns a function from the name of a case to its file and feeds; each is exported once."""
    folder = tmp_path_factory.mktemp("exported")
    held: dict[str, tuple[Path, dict[str, np.ndarray]]] = {}

    def export(name: str) -> tuple[Path, dict[str, np.ndarray]]:
        if name not in held:
            module, args = CASES[name].build(0)
            path = folder / f"{name}.onnx"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.onnx.export(module, args, str(path), dynamo=True, verbose=False, external_data=False)
            leaves = [t for t in pytree.tree_leaves(args) if isinstance(t, torch.Tensor)]
            names = [i.name for i in onnx.load(str(path)).graph.input]
            held[name] = (path, {n: t.detach().numpy() for n, t in zip(names, leaves, strict=True)})
        return held[name]

    return export


def checks(path: Path, feeds: dict[str, np.ndarray], **options: object) -> tuple[Check, ...]:
    subject = Subject(path.stem, "onnx", str(path), "", onnx.load(str(path)), (Example(kwargs=feeds),), path=path)
    return Session(subject, CheckOptions(**options), lambda _: None).run().checks


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_right_file_is_never_called_wrong(name, exported):
    (check,) = checks(*exported(name))
    # Where the file's own rounding is coarse, nothing finer can be said of a runtime.
    assert check.verdict in (Verdict.FAITHFUL, Verdict.INCONCLUSIVE), told(check)
    if check.verdict is Verdict.INCONCLUSIVE:
        assert "would not have been seen" in check.explanation, told(check)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_right_optimizers_make_of_it_is_faithful(name, exported):
    for check in checks(*exported(name), converters=OPTIMIZERS):
        assert check.verdict is Verdict.FAITHFUL, f"{check.converter}: {told(check)}"


@pytest.mark.slow
@pytest.mark.parametrize("name", WEIGHTED)
def test_a_weight_off_by_a_thousandth_is_seen(name, exported, tmp_path):
    path, feeds = exported(name)
    model = onnx.load(str(path))
    weights = [t for t in model.graph.initializer if t.data_type == onnx.TensorProto.FLOAT and len(t.dims) >= 2]
    weights = [t for t in weights if np.abs(numpy_helper.to_array(t)).max() < 1e3]  # no masks
    largest = max(weights, key=lambda t: np.prod(t.dims))
    values = numpy_helper.to_array(largest) * np.float32(1.001)
    largest.CopyFrom(numpy_helper.from_array(values, largest.name))
    candidate = tmp_path / "candidate.onnx"
    onnx.save(model, str(candidate))
    (check,) = checks(path, feeds, candidate=str(candidate))
    assert check.verdict is Verdict.DIVERGENT, told(check)
    assert check.stage is Stage.NOT_DISTINGUISHABLE
