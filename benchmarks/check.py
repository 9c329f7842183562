"""How long a whole check takes against `torch.onnx.export(..., dynamo=True, verify=True)` of the same small models.

Warm: each side has a process of its own that has imported everything and has worked on every model once. Cold: the
command `trueport check` against a fresh Python that imports, builds, exports and verifies. One thread on both sides;
rounds are interleaved and medians taken. CPU time counts all processes that a command started; it says more than wall
time on a busy machine.

    python -m benchmarks.check [--rounds 7] [--cold-rounds 7] [--write]
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from evaluation.wording import machine, table

from benchmarks.pages import PAGE, ROOT, with_section
from trueport.core.versions import package_versions

NAMES = ("mlp", "cnn", "encoder_layer", "lstm", "attention")
SIDES = ("check", "verify")
GOALS = {"warm": 1.0, "cold": 1.5}
HELP_GOAL_S = 0.3
ONE_THREAD = {**os.environ, **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")}


@dataclass
class Times:
    """Seconds of both sides for every model, and what the check did."""

    wall: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    cpu: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    facts: dict[str, dict[str, object]] = field(default_factory=dict)

    def add(self, model: str, side: str, measured: dict[str, object]) -> None:
        """Adds one round."""
        facts = dict(measured)
        self.wall[model, side].append(float(str(facts.pop("wall"))))
        self.cpu[model, side].append(float(str(facts.pop("cpu"))))
        if facts:
            self.facts[model] = facts


class WarmSide:
    """The warm process of one side.

    Args:
        side: `check` or `verify`.
    """

    def __init__(self, side: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.sides", side], cwd=ROOT, env=ONE_THREAD, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def measure(self, model: str) -> dict[str, object]:
        """Returns what one round takes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(model + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the warm process ended with code {self._process.wait()} at '{model}'")
        found: dict[str, object] = json.loads(line)
        return found

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)


def warm(rounds: int) -> Times:
    """Returns the times in warm processes; the first round of each model only warms."""
    sides = {side: WarmSide(side) for side in SIDES}
    try:
        return interleaved(rounds, lambda model, side: sides[side].measure(model), warming=1)
    finally:
        for side in sides.values():
            side.close()


def cold(rounds: int) -> Times:
    """Returns the times of whole commands; each has run once before, so that its files are in memory."""
    commands = {
        "check": lambda model: ["-m", "trueport", "check", f"benchmarks/models.py:{model}", "--quiet"],
        "verify": lambda model: ["-c", _PLAIN, model],
    }
    command(commands["check"](NAMES[0]))
    command(commands["verify"](NAMES[0]))
    return interleaved(rounds, lambda model, side: command(commands[side](model)))


_PLAIN = (
    "import sys, warnings; warnings.simplefilter('ignore'); "
    "from benchmarks.sides import SIDES, one_thread; from benchmarks.models import MODELS; "
    "one_thread(); SIDES['verify'](MODELS[sys.argv[1]]())"
)


def interleaved(rounds: int, measure: Callable[[str, str], dict[str, object]], warming: int = 0) -> Times:
    """Returns the times of rounds in which the sides take turns, each going first in every other round."""
    times = Times()
    for number in range(rounds + warming):
        for model in NAMES:
            for side in SIDES[:: 1 if number % 2 else -1]:
                measured = measure(model, side)
                if number >= warming:
                    times.add(model, side, measured)
        print(f"round {number + 1 - warming} of {rounds}", file=sys.stderr, flush=True)
    return times


def command(arguments: Sequence[str]) -> dict[str, object]:
    """Returns wall seconds of a fresh Python, and CPU seconds of it and all processes that it waited for."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, env=ONE_THREAD, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"expected code 0 of {' '.join(arguments)}, got {process.returncode}")
    return {"wall": wall, "cpu": usage.ru_utime + usage.ru_stime}


def help_seconds(rounds: int) -> float:
    """Returns the median CPU seconds of `trueport --help`."""
    return statistics.median(float(str(command(["-m", "trueport", "--help"])["cpu"])) for _ in range(rounds))


def rows(kind: str, times: Times) -> list[tuple[str, ...]]:
    """Returns one row a model, and the median of the ratios."""
    made, walls, cpus = [], [], []
    for model in NAMES:
        wall = {side: statistics.median(times.wall[model, side]) for side in SIDES}
        cpu = {side: statistics.median(times.cpu[model, side]) for side in SIDES}
        walls.append(wall["check"] / wall["verify"])
        cpus.append(cpu["check"] / cpu["verify"])
        made.append((kind, model, *(f"{s:.2f}" for s in (*wall.values(), *cpu.values())), f"{walls[-1]:.2f}",
                     f"{cpus[-1]:.2f}", str(times.facts.get(model, {}).get("inputs", "-")),
                     str(times.facts.get(model, {}).get("checkpoints", "-"))))  # fmt: skip
    middle = (f"**{statistics.median(walls):.2f}**", f"**{statistics.median(cpus):.2f}**")
    made.append((kind, "median", "", "", "", "", *middle, "", ""))
    return made


HEAD = ("", "model", "check, wall s", "verify, wall s", "check, CPU s", "verify, CPU s", "wall ratio", "CPU ratio",
        "input sets", "checkpoints")  # fmt: skip


def page(measured: dict[str, Times], rounds: dict[str, int], help_s: float, load: float) -> str:
    """Returns the section of the documentation."""
    where = machine()
    versions = package_versions("torch", "onnx", "onnxscript", "onnxruntime", "numpy", "scipy")
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    made = [row for kind, times in measured.items() for row in rows(kind, times)]
    counted = ", ".join(f"{rounds[kind]} {kind}" for kind in measured)
    goals = ", ".join(f"{kind} at most {goal}x" for kind, goal in GOALS.items())
    return (
        "## A whole check against `torch.onnx.export(verify=True)`\n\n"
        "What is compared: trueport's whole check (all checkpoints, the default input sets, the measured tolerance, "
        "verdict and stage) and the exporter's own verification (one comparison of the outputs of one input set with "
        "the decomposed program's, by fixed numbers). *Warm* is in a process that has imported everything and seen "
        "the model; *cold* is the whole command `trueport check file.py:NAME` against a fresh Python that imports, "
        "builds, exports and verifies. One thread on both sides.\n\n"
        f"{today}, {where['cpu']}, {where['cores']} cores, load average at the start {load:.1f}, Python "
        f"{platform.python_version()}, {packages}. Medians of interleaved rounds: {counted}. CPU seconds are those of "
        "all processes, and are what to trust where the load is not near zero.\n\n"
        f"{table(HEAD, made)}\n\nThe goals are {goals}.\n\n"
        f"`trueport --help` takes {help_s:.2f} s of CPU (goal: less than {HELP_GOAL_S} s).\n\n"
        "`python -m benchmarks.check --write` measures it again.\n"
    )


def main() -> None:
    """Measures, prints the page, and writes it where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="of the warm processes")
    parser.add_argument("--cold-rounds", type=int, default=7, help="of the whole commands; 0 for none")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    chosen = parser.parse_args()
    load = os.getloadavg()[0]
    rounds = {"warm": chosen.rounds, "cold": chosen.cold_rounds}
    help_s = help_seconds(max(chosen.rounds, 1))
    measured = {kind: run(rounds[kind]) for kind, run in (("warm", warm), ("cold", cold)) if rounds[kind]}
    text = page(measured, rounds, help_s, load)
    print(text)
    if chosen.write:
        PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")


if __name__ == "__main__":
    main()
