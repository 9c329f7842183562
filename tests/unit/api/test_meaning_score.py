"""What outputs with some faults neutralized are judged by: the candidate's noise, not its distance from them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from trueport.api.locate.meaning import Meaning
from trueport.oracle.compare import ReferenceOutput
from trueport.oracle.thresholds import THRESHOLDS

RIGHT = np.linspace(1.0, 2.0, 12).reshape(3, 4)


class _Candidate:
    """Whose outputs are three times too large, with a little noise."""

    def evaluate(self, inputs: Any, known: Any) -> list[Any]:
        """Returns the outputs."""
        return [SimpleNamespace(value=3 * RIGHT)]

    def noisy(self, inputs: Any, *, draws: int, seed: int, known: Any) -> list[list[Any]]:
        """Returns outputs with noise."""
        rng = np.random.default_rng(seed)
        return [[3 * RIGHT * (1 + 1e-13 * rng.standard_normal(RIGHT.shape))] for _ in range(draws)]


def _score(outputs: Any) -> float:
    zero = np.zeros(RIGHT.shape)
    reference = ReferenceOutput("y", "float64", RIGHT, zero, zero, np.zeros(RIGHT.shape, bool), 0)
    references = SimpleNamespace(inputs=["x"], confirmed=lambda _: SimpleNamespace(outputs=[reference]))
    session: Any = SimpleNamespace(references=references, options=SimpleNamespace(seed=0))
    walk: Any = SimpleNamespace(known=None)
    trial: Any = SimpleNamespace(inputs="x", comparisons=[])
    candidate: Any = _Candidate()
    return float(Meaning(session, walk, trial)._scorer(candidate)(outputs))


def test_an_error_that_is_left_is_not_hidden_by_one_that_was_neutralized() -> None:
    assert _score([1.1 * RIGHT]) > THRESHOLDS.meaning


def test_noise_of_the_candidate_is_no_error() -> None:
    assert _score([RIGHT * (1 + 1e-13)]) <= THRESHOLDS.meaning
