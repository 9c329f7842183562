"""How long a whole check of a large model takes, and how much memory, against `torch.onnx.export(verify=True)`.

The models have the size of BERT-base and of ResNet-50, with random weights. The other side is the exporter with its own
verification, and twelve eager forwards of every input set that the check used: what anybody would need who measured
noise by running the model. One thread on both sides; each measurement is a fresh process that has imported everything
and has exported a small model once; rounds are interleaved and medians taken. Memory is the peak resident size minus
that after the imports.

    python -m benchmarks.large [--rounds 3] [MODEL ...]
    python -m benchmarks.large --side SIDE MODEL [--sets N]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import os
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

ROOT = Path(__file__).parents[1]
SIDES = ("check", "verify")
FORWARDS = 12
TIME_GOAL, MEMORY_GOAL = 1.3, 5.0
ONE_THREAD = {**os.environ, **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")}

Made = tuple[nn.Module, tuple[torch.Tensor, ...]]


def bert_base() -> Made:
    """An encoder of 110 million weights on 128 tokens."""
    from transformers import BertConfig, BertModel

    from trueport.adapters.sources.zoo.calls import MaskedText

    torch.manual_seed(0)
    module = MaskedText(BertModel(BertConfig())).eval().requires_grad_(requires_grad=False)
    tokens = torch.randint(3, 30_000, (1, 128), generator=torch.Generator().manual_seed(0))
    return module, (tokens, torch.ones_like(tokens))


def resnet_50() -> Made:
    """A residual network of 25 million weights on one image of 224 by 224."""
    from transformers import ResNetConfig, ResNetForImageClassification

    from trueport.adapters.sources.zoo.calls import Image

    torch.manual_seed(0)
    module = Image(ResNetForImageClassification(ResNetConfig(num_labels=1000))).eval()
    image = torch.randn(1, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    return module.requires_grad_(requires_grad=False), (image,)


MODELS: dict[str, Callable[[], Made]] = {"bert-base": bert_base, "resnet-50": resnet_50}


def check(module: nn.Module, args: tuple[torch.Tensor, ...], _: int) -> dict[str, object]:
    """Checks the model in this process."""
    from trueport.adapters.sources import subject_from_object
    from trueport.api.session import Session
    from trueport.core.options import CheckOptions

    made = Session(subject_from_object(module, args), CheckOptions(), lambda _: None).run().checks[0]
    stages = {f"{s.stage}: {s.checkpoint}": s.elapsed_s for s in made.stages}
    return {"verdict": made.verdict, "sets": made.inputs_tried, "stages": stages}


def verify(module: nn.Module, args: tuple[torch.Tensor, ...], sets: int) -> dict[str, object]:
    """Exports the model with the exporter's verification, and runs it on as many input sets as the check did."""
    torch.onnx.export(module, args, dynamo=True, verify=True, verbose=False)
    started = time.perf_counter()
    with torch.no_grad():
        for _ in range(FORWARDS * sets):
            module(*args)
    return {"forwards": time.perf_counter() - started}


def peak_bytes() -> int:
    """Returns the largest resident size so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def one_side(side: str, name: str, sets: int) -> dict[str, object]:
    """Measures one side in this process."""
    from benchmarks.sides import one_thread

    one_thread()
    logging.disable(logging.ERROR)
    work = {"check": check, "verify": verify}[side]
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        work(nn.Linear(2, 2), (torch.ones(1, 2),), 1)
        imported = peak_bytes()
        module, args = MODELS[name]()
        weights = sum(p.numel() * p.element_size() for p in module.parameters())
        wall, cpu = time.perf_counter(), time.process_time()
        facts = work(module, args, sets)
        spent = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    return {**spent, "memory": (peak_bytes() - imported) / weights, **facts}


def fresh(side: str, name: str, sets: int) -> dict[str, object]:
    """Measures one side in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.large", "--side", side, "--sets", str(sets), name]
    done = subprocess.run(command, cwd=ROOT, env=ONE_THREAD, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with code {done.returncode}: {done.stderr[-2000:]}")
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def compared(name: str, rounds: int) -> str:
    """Returns one line about one model: medians of interleaved rounds."""
    spent: dict[str, list[float]] = {side: [] for side in SIDES}
    memory: list[float] = []
    sets, verdict = 3, ""
    for number in range(rounds):
        for side in SIDES[:: 1 if number % 2 == 0 else -1]:
            facts = fresh(side, name, sets)
            spent[side].append(float(str(facts["wall"])))
            if side == "check":
                sets, verdict = int(str(facts["sets"])), str(facts["verdict"])
                memory.append(float(str(facts["memory"])))
            print(name, side, json.dumps(facts), file=sys.stderr, flush=True)
    wall = {side: statistics.median(times) for side, times in spent.items()}
    ratio = wall["check"] / wall["verify"]
    return (
        f"{name}: {verdict} on {sets} input sets; check {wall['check']:.1f} s, export(verify=True) and {FORWARDS} "
        f"forwards a set {wall['verify']:.1f} s: {ratio:.2f} (goal {TIME_GOAL}); "
        f"memory {statistics.median(memory):.1f} times the weights (goal {MEMORY_GOAL})"
    )


def main() -> None:
    """Measures the models named, or all; with `--side` one side in this process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--side", choices=SIDES)
    parser.add_argument("--sets", type=int, default=3)
    chosen = parser.parse_args()
    for name in chosen.models or MODELS:
        if chosen.side is not None:
            print(json.dumps(one_side(chosen.side, name, chosen.sets)), flush=True)
        else:
            print(compared(name, chosen.rounds), flush=True)


if __name__ == "__main__":
    main()
