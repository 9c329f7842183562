"""The handed cases: causes as their files state them; known faults named in the cases that they came from alone."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.shared.test_handed_cases import FOLDER, FRESH, RUNTIMES, fits, load, warm
from trueport import CheckOptions, check_path
from trueport.cause.known import index
from trueport.core.result import Check
from trueport.core.taxonomy import Verdict

FILES = ("onnx_pairs", "onnx_optimizers", "onnx_runtime", "tf2onnx_cases", "torch_exporters")
SHARE = 0.85
"""So many causes are at least as stated."""
KNOWN = {
    ("floor_divide_negative_int", "torch-script"): "pytorch/pytorch#78442",
    ("floor_divide_exact_in_example", "torch-script"): "pytorch/pytorch#78442",
    ("index_put_accumulate_repeated_index", "torch-script"): "pytorch/pytorch#61034",
    ("pad_then_max_pool", "onnxoptimizer"): "onnx/optimizer#318",
    ("linear_resize_of_opset_10", "onnx-version-converter"): "onnx/onnx#8480",
    ("ceil_division_by_negated_floor", "tf2onnx"): "onnx/tensorflow-onnx#2174",
    ("floor_divide_negative_int", "tf2onnx"): "onnx/tensorflow-onnx#2174",
    ("one_hot_of_missing_class", "tf2onnx"): "onnx/onnx#4154",
    ("cast_to_same_type_beside_division", "onnxruntime"): "microsoft/onnxruntime#32416",
    ("layer_norm_scale_wider_than_axis", "onnxruntime"): "microsoft/onnxruntime#32603",
    ("log_softmax_of_large_scores", "onnx-reference"): "onnx/onnx#8423",
    ("local_response_norm_over_channels", "onnx-reference"): "onnx/onnx#7805",
    ("log_sum_exp_of_minus_infinities", "onnx-reference"): "onnx/onnx#8441",
}
"""(case, tool) -> the public fault that it is."""


def _checked(file: str, case: str, tool: str, folder: Path) -> Check:
    if file == "onnx_pairs":
        reference, candidate, feeds = getattr(load(file), case)()
        for name, model in (("reference", reference), ("candidate", candidate)):
            onnx.save(model, str(folder / f"{name}.onnx"))
        np.savez(folder / "feeds.npz", **feeds)
        given = {"candidate": str(folder / "candidate.onnx"), "inputs": str(folder / "feeds.npz")}
        return warm().check_path(str(folder / "reference.onnx"), **given).checks[0]
    chosen: dict[str, Any] = {"runtimes": (tool,)} if tool in RUNTIMES else {"converters": (tool,)}
    path = f"{FOLDER / file}.py:{case}"
    if file in FRESH:  # what an exporter of PyTorch does can depend on what its process exported before
        return check_path(path, CheckOptions(**chosen, timeout_s=300.0)).checks[0]
    return warm().check_path(path, **chosen).checks[0]


@cache
def failures(folder: Path) -> tuple[tuple[str, str, str, Check], ...]:
    """Returns (case, tool, stated cause, check) of all claims of a failure that come out as one."""
    assert FOLDER.is_dir(), f"expected the handed cases in {FOLDER}, found none"
    found = []
    for file in FILES:
        for case, facts in load(file).CASES.items():
            for tool, claim in facts["expect"].items():
                if facts.get("cause") is None or fits(Verdict.FAITHFUL, claim[0]):
                    continue
                check = _checked(file, case, tool, folder)
                if check.verdict in (Verdict.DIVERGENT, Verdict.CRASHED):
                    found.append((case, tool, facts["cause"], check))
    return tuple(found)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("causes")


@pytest.mark.shared
@pytest.mark.timeout(1800)
def test_causes_are_as_stated(folder: Path) -> None:
    told = failures(folder)
    wrong = [
        f"{case} by {tool}: {check.cause}, stated {stated}"
        for case, tool, stated, check in told
        if check.cause != stated
    ]
    assert len(told) >= 30
    assert len(wrong) <= (1 - SHARE) * len(told), f"{len(wrong)} of {len(told)}:\n" + "\n".join(wrong)


@pytest.mark.shared
@pytest.mark.timeout(1800)
def test_known_faults_are_named_in_their_own_cases_alone(folder: Path) -> None:
    named = {}
    for case, tool, _, check in failures(folder):
        for finding in check.findings:
            if "known" in finding.evidence:
                named[case, tool] = str(finding.evidence["known"]).partition(": ")[0]
    assert named == KNOWN, json.dumps({" by ".join(k): v for k, v in named.items()}, indent=1)
    assert set(KNOWN.values()) == {fault.tracker for fault in index()}
