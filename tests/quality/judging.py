"""Checks a module in this process, as the quality tests and the evaluation need it: one converter, one runtime."""

from typing import Any

import torch

from trueport.adapters.sources import subject_from_object
from trueport.api.session import Session
from trueport.core.options import CheckOptions
from trueport.core.result import Check


def judge(
    module: torch.nn.Module, args: tuple[Any, ...], *, converter: str = "torch-dynamo", seed: int = 0, **subject: Any
) -> Check:
    """Returns the check of a module through one converter to ONNX Runtime."""
    torch.set_num_threads(1)
    options = CheckOptions(converters=(converter,), seed=seed, locate=False)  # verdict and stage alone are asked for
    made = subject_from_object(module, args, **subject)
    return Session(made, options, lambda _: None).run().checks[0]


def told(check: Check) -> str:
    """Returns what a failing test should show."""
    lines = [f"{check.verdict} {check.stage}: {check.explanation}"]
    lines += [f"  {s.stage} / {s.checkpoint}: {s.status} {s.score}" for s in check.stages]
    lines += [f"  finding {f.kind} at {f.stage}: {f.message}" for f in check.findings]
    return "\n".join(lines)
