"""How long it takes to judge all intermediate values of a model, and to locate a fault in a large one.

*All values*: 80 linear layers with an activation after each. What the exporter wrote is judged value by value against
the captured program, by trueport and by torch's own tool for it, in one process, after one export, on one input. With
one bias off in the file, trueport does what follows a failed check: it finds the node.

*Large*: a model of the size of BERT-base, one operator of which is translated wrongly, checked in a worker with the
default limit of memory: how long the check takes, and how long the search after it.

    python -m benchmarks.locate [--rounds 5] [--no-torch] [--no-large] [--write]
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import io
import json
import logging
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import psutil
import torch
from evaluation.wording import machine, table
from torch import nn

from benchmarks.large import ONE_THREAD
from benchmarks.pages import PAGE, ROOT, with_section
from benchmarks.planted_bert import OPERATOR
from benchmarks.sides import one_thread
from trueport.adapters.float64.constants import KnownNumbers
from trueport.adapters.float64.onnx_program import OnnxProgram
from trueport.adapters.float64.torch.module import CapturedProgram, to_array
from trueport.api.locate.budget import LIMIT_BYTES
from trueport.api.locate.meaning import FLOOR_DRAWS
from trueport.core.options import CheckOptions
from trueport.core.subject import Example
from trueport.core.versions import package_versions
from trueport.inputs.draw import InputSet
from trueport.locate.forced import local_errors
from trueport.locate.pairs import Pairing

LAYERS, WIDTH, ROWS = 80, 256, 8
GOAL_S, GOAL_RATIO, GOAL_LOCATE = 2.0, 80.0, 5.0
PLANTED = "benchmarks/planted_bert.py:planted"
TIMEOUT_S = 3600.0


@dataclass(frozen=True)
class Spent:
    """Wall and CPU seconds, and how many values were judged."""

    wall: float
    cpu: float
    values: int


def network() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Returns the layers with weights that keep the size of activations, and one input."""
    torch.manual_seed(0)
    module = nn.Sequential(*[part for _ in range(LAYERS) for part in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]).eval()
    for parameter in module.parameters():
        if parameter.ndim == 2:
            nn.init.kaiming_normal_(parameter)
    return module.requires_grad_(requires_grad=False), (torch.randn(ROWS, WIDTH),)


class AllValues:
    """The exported network, and both ways to judge its values."""

    def __init__(self) -> None:
        self.module, self.args = network()
        with contextlib.redirect_stdout(io.StringIO()):
            self.program = torch.onnx.export(self.module, self.args, dynamo=True, verbose=False)
        assert self.program is not None

    def ours(self, model: onnx.ModelProto) -> tuple[int, list[str]]:
        """Returns how many values were judged and which nodes introduce an error."""
        known = KnownNumbers([to_array(p) for p in self.module.parameters()])
        inputs = InputSet("example", "example", (to_array(self.args[0]),))
        source = CapturedProgram(self.program.exported_program, Example(self.args, {}))
        good = source.trace(inputs, known, draws=FLOOR_DRAWS, seed=0, limit_bytes=LIMIT_BYTES)
        converted = OnnxProgram(model, [value.name for value in model.graph.input])

        def follow(see: Any, draw: int | None) -> list[Any]:
            return converted.followed(inputs, known, see, draw=draw, seed=0)

        pairing = Pairing(good, converted.constant_values())
        follow(pairing.see, None)
        errors, judged, _ = local_errors(follow, good, pairing.pairs())
        return judged, [error.node.name for error in errors]

    def theirs(self) -> int:
        """Returns how many values torch's own comparison judged."""
        from torch.onnx._internal.exporter._verification import verify_onnx_program

        with contextlib.redirect_stdout(io.StringIO()):
            return len(verify_onnx_program(self.program, compare_intermediates=True))

    def faulty(self) -> tuple[onnx.ModelProto, str]:
        """Returns the file with one bias of a layer in the middle off by a thousandth, and that layer's node."""
        model = onnx.ModelProto()
        model.CopyFrom(self.program.model_proto)
        layers = [n for n in model.graph.node if n.op_type == "Gemm"]
        node = layers[len(layers) // 2]
        tensor = next(t for t in model.graph.initializer if t.name == node.input[2])
        values = np.array(onnx.numpy_helper.to_array(tensor))
        values[3] += 1e-3
        tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
        return model, node.name


def timed(work: Callable[[], int]) -> Spent:
    """Returns what some work takes."""
    wall, cpu = time.perf_counter(), time.process_time()
    values = work()
    return Spent(time.perf_counter() - wall, time.process_time() - cpu, values)


def all_values(rounds: int, *, torch_too: bool) -> list[tuple[str, Spent]]:
    """Returns the medians of trueport's rounds on the right and on the faulty file, and torch's one run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = AllValues()
        model, node = made.faulty()
        made.ours(made.program.model_proto)  # the first run imports and builds tables

        def located() -> int:
            judged, blamed = made.ours(model)
            if blamed != [node]:
                raise SystemExit(f"expected the error at '{node}' alone, got {blamed}")
            return judged

        def right() -> int:
            judged, blamed = made.ours(made.program.model_proto)
            if blamed:
                raise SystemExit(f"expected no error in a right file, got {blamed}")
            return judged

        found = [("trueport, right file", median([timed(right) for _ in range(rounds)]))]
        found.append(("trueport, one bias off", median([timed(located) for _ in range(rounds)])))
        if torch_too:
            found.append(("torch, compare_intermediates", timed(made.theirs)))
    return found


def median(runs: list[Spent]) -> Spent:
    """Returns the medians of several runs."""
    return Spent(statistics.median(r.wall for r in runs), statistics.median(r.cpu for r in runs), runs[0].values)


# ---------------------------------------------------------------------- a large model


def large_here() -> dict[str, Any]:
    """Checks the planted model in a worker; what it took until the search began, and altogether.

    The search begins when the verdict is there, so one run measures both.
    """
    from trueport.api import check_path

    begun = {}
    started = time.perf_counter()

    def on_event(event: dict[str, Any]) -> None:
        if event.get("event") == "locating":
            begun.update(wall=time.perf_counter() - started, cpu=_cpu_of_children())

    check = check_path(PLANTED, CheckOptions(timeout_s=TIMEOUT_S), on_event=on_event).checks[0]
    wall = time.perf_counter() - started
    if not begun:
        raise SystemExit(f"expected a failed check, got {check.verdict}: {check.explanation}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    place = next((f for f in check.findings if f.nodes), check.findings[0])
    return {
        "check_wall": begun["wall"], "check_cpu": begun["cpu"], "wall": wall, "cpu": used.ru_utime + used.ru_stime,
        "memory_mib": used.ru_maxrss / 1024, "verdict": check.verdict, "stage": check.stage, "cause": check.cause,
        "nodes": [n.op_type for n in place.nodes], "message": place.message,
    }  # fmt: skip


def _cpu_of_children() -> float:
    """Returns the CPU seconds of all processes that this one has started and that still run."""
    spent = [process.cpu_times() for process in psutil.Process().children(recursive=True)]
    return float(sum(times.user + times.system for times in spent))


def large() -> dict[str, Any]:
    """Returns what the large model takes, from a process of its own."""
    command = [sys.executable, "-m", "benchmarks.locate", "--side"]
    done = subprocess.run(command, cwd=ROOT, env=ONE_THREAD, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with code {done.returncode}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(found), file=sys.stderr, flush=True)
    if not found["nodes"] or found["nodes"][0] != OPERATOR:
        raise SystemExit(f"expected {OPERATOR} to be found, got {found['nodes']}: {found['message']}")
    return found


# ---------------------------------------------------------------------- the page


def section(values: list[tuple[str, Spent]], sides: dict[str, Any], rounds: int, load: float) -> str:
    """Returns the section of the documentation."""
    where = machine()
    versions = package_versions("torch", "onnx", "onnxscript", "onnxruntime", "numpy", "transformers")
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    text = (
        "## Where: all values, and a fault in a large model\n\n"
        f"{today}, {where['cpu']}, {where['cores']} cores, load average at the start {load:.1f}, Python "
        f"{platform.python_version()}, {packages}. One thread. CPU seconds are what to trust where the load is not "
        f"near zero.\n\n{_values_text(values, rounds)}"
    )
    return text + (_large_text(sides) if sides else "") + "`python -m benchmarks.locate --write` measures it again.\n"


def _values_text(values: list[tuple[str, Spent]], rounds: int) -> str:
    rows = [(name, f"{s.wall:.2f}", f"{s.cpu:.2f}", str(s.values)) for name, s in values]
    spent = dict(values)
    ours = spent["trueport, right file"]
    told = (
        f"All intermediate values of {LAYERS} linear layers ({WIDTH} wide) with an activation after each, "
        f"{2 * LAYERS} nodes: the file that the exporter wrote against the captured program, on one input, after the "
        f"export. Medians of {rounds} rounds for trueport, one run for torch.\n\n"
        f"{table(('', 'wall s', 'CPU s', 'values judged'), rows)}\n\n"
        f"The goal is at most {GOAL_S:.0f} s"
    )
    theirs = spent.get("torch, compare_intermediates")
    if theirs is None:
        return told + ".\n\n"
    ratios = f"{theirs.wall / ours.wall:.0f}x in wall time and {theirs.cpu / ours.cpu:.0f}x in CPU time"
    return f"{told} and at least {GOAL_RATIO:.0f}x as fast as torch's own tool; measured: {ratios}.\n\n"


def _large_text(found: dict[str, Any]) -> str:
    search = found["cpu"] - found["check_cpu"]
    return (
        "A model of the size of BERT-base (110 million weights, 128 tokens) in which one operator of one layer is "
        f"translated wrongly. The check takes {found['check_wall']:.0f} s ({found['check_cpu']:.0f} s of CPU), the "
        f"search for the place after it {found['wall'] - found['check_wall']:.0f} s ({search:.0f} s of CPU): check "
        f"and search are {found['cpu'] / found['check_cpu']:.2f} times the check in CPU time (goal: at most "
        f"{GOAL_LOCATE:.0f}). The worker needs {found['memory_mib']:,.0f} MiB; the default limit is "
        f"{CheckOptions().memory_mb:,} MiB. Found: `{found['nodes'][0]}`, stage `{found['stage']}`.\n\n"
    )


def main() -> None:
    """Measures, prints the section, and writes it where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.locate", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-torch", action="store_true", help="leave out torch's own tool, which takes minutes")
    parser.add_argument("--no-large", action="store_true", help="leave out the large model")
    parser.add_argument("--side", action="store_true", help="the large model in this process")
    parser.add_argument("--write", action="store_true", help=f"write the section of {PAGE.relative_to(ROOT)}")
    chosen = parser.parse_args()
    one_thread()
    logging.disable(logging.ERROR)
    if chosen.side:
        print(json.dumps(large_here()), flush=True)
        return
    load = os.getloadavg()[0]
    values = all_values(chosen.rounds, torch_too=not chosen.no_torch)
    sides = {} if chosen.no_large else large()
    text = section(values, sides, chosen.rounds, load)
    print(text)
    if chosen.write:
        PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")


if __name__ == "__main__":
    main()
