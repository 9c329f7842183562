"""Greedy decoding with converted files against the source: tokens must agree until the first legitimate tie.

The prompt goes through the file of `zoo:hf/NAME-prefill`, every further token through that of `zoo:hf/NAME-decode`,
each with the cache that the files themselves made. What they may choose is judged by the source in float64 on the whole
sequence so far, with the floor of its last logits: there the noise of every cached key and value is part of one
computation. A step is a tie where the two largest logits lie nearer to each other than their floors allow to tell; from
there on the sequences may go apart, and nothing more is said.

    python -m evaluation.greedy [--steps 24] [NAME ...]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueport.adapters.converters import converter
from trueport.adapters.float64.torch.module import EagerModule
from trueport.adapters.protocols import ConverterOptions
from trueport.adapters.runtimes import runtime
from trueport.adapters.sources import load_subject
from trueport.adapters.sources.torch_dynamic import tensor_leaves
from trueport.core.subject import Subject
from trueport.inputs.draw import InputSet
from trueport.oracle.noise import SCREEN
from trueport.oracle.thresholds import THRESHOLDS

Array = NDArray[Any]
NAMES = ("gpt2", "llama")


@dataclass(frozen=True)
class Agreement:
    """How far two sequences go together.

    Attributes:
        agreed: steps on which the files chose the source's token.
        tie: the step at which rounding decides, or None.
        wrong: (step, token of the source, token of the files) of an unexplained difference, or None.
    """

    agreed: int
    tie: int | None = None
    wrong: tuple[int, int, int] | None = None


class Files:
    """Both converted files with the cache between them.

    Args:
        prefill: takes the prompt.
        decode: takes one token and the cache.
        inputs: names of the inputs of both, in order.
    """

    def __init__(self, prefill: Path, decode: Path, inputs: tuple[Sequence[str], Sequence[str]]) -> None:
        sessions = runtime("onnxruntime", provider=None, threads=1)
        self._prefill, self._decode = sessions.load(prefill), sessions.load(decode)
        self._inputs = inputs
        self._cache: list[Array] = []

    def begin(self, prompt: Array) -> int:
        """Returns the first token after the prompt."""
        values = (prompt, np.ones_like(prompt))
        return self._taken(self._prefill.run(dict(zip(self._inputs[0], values, strict=True))))

    def following(self, token: int) -> int:
        """Returns the token that comes after this one."""
        past = self._cache[0].shape[2]
        values = (np.array([[token]]), np.ones((1, past + 1), np.int64), *self._cache)
        return self._taken(self._decode.run(dict(zip(self._inputs[1], values, strict=True))))

    def _taken(self, outputs: list[Array]) -> int:
        logits, *self._cache = outputs
        return int(np.argmax(logits[0, -1]))


def agreement(source: Subject, files: Files, *, steps: int, seed: int = 0) -> Agreement:
    """Returns how far the files follow the source.

    Args:
        source: the prefill half.
        files: what was made of both halves.
        steps: how many tokens to decode.
        seed: of the prompt and of all noise.
    """
    high = int(source.model.model.config.vocab_size)
    sequence = np.random.default_rng(seed).integers(3, high, (1, 8))
    eager = EagerModule(source.model, source.examples[0], seed=seed)
    chosen = files.begin(sequence)
    for step in range(steps):
        inputs = InputSet(f"step {step}", "given", (sequence, np.ones_like(sequence)))
        logits = eager.reference(inputs, step, SCREEN).outputs[0]
        value, floor = logits.value[0, -1], logits.arithmetic_floor[0, -1]
        first, second = (int(i) for i in np.argsort(-value, kind="stable")[:2])
        if value[first] - value[second] <= THRESHOLDS.margin * (floor[first] + floor[second]):
            return Agreement(step, tie=step)
        if chosen != first:
            return Agreement(step, wrong=(step, first, chosen))
        sequence = np.concatenate([sequence, [[first]]], axis=1)
        chosen = files.following(first)
    return Agreement(steps)


def converted(subject: Subject, folder: Path) -> tuple[Path, Sequence[str]]:
    """Returns the file that the default converter makes, and the names of its inputs."""
    folder.mkdir()
    names = tuple(name for name, _ in tensor_leaves(subject))
    last = list(converter("torch-dynamo").convert(subject, ConverterOptions(folder, input_names=names)))[-1]
    assert last.path is not None
    return last.path, [value.name for value in last.model.graph.input]


def measured(name: str, steps: int, seed: int = 0) -> Agreement:
    """Returns the agreement of one family of the zoo."""
    halves = [load_subject(f"zoo:hf/{name}-{half}", seed=seed) for half in ("prefill", "decode")]
    with tempfile.TemporaryDirectory(prefix="trueport-greedy-") as folder:
        made = [converted(half, Path(folder) / str(i)) for i, half in enumerate(halves)]
        files = Files(made[0][0], made[1][0], (made[0][1], made[1][1]))
        return agreement(halves[0], files, steps=steps, seed=seed)


def main() -> None:
    """Measures the families named, or all."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.greedy", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--steps", type=int, default=24)
    chosen = parser.parse_args()
    for name in chosen.names or NAMES:
        print(name, measured(name, chosen.steps), flush=True)


if __name__ == "__main__":
    main()
