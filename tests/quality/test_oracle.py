"""Every right conversion is called faithful and every wrong one divergent, with margins printed on failure.

The cases of the design's tables run with three seeds, all others with one; `evaluation/oracle.py` runs everything with
three seeds through both exporters and writes the margins down.
"""

import pytest

from tests.quality.judging import judge, told
from tests.quality.oracle_cases import CASES, OracleCase
from tests.quality.oracle_cases.case import OWN
from trueport.core.taxonomy import Verdict

HEAVY = frozenset({"attention-of-1024-tokens", "lstm-of-300-steps", "lstm"})
"""These take half a minute each; one seed is enough."""
REAL = frozenset(
    {"gpt2", "vit", "llama", "mamba", "swin", "segformer", "t5-encoder", "clip-text", "resnet", "wav2vec2"}
)


def seeds(case: OracleCase) -> list[int]:
    once = case.table == OWN or case.name in HEAVY | REAL
    return [0] if once else [0, 1, 2]


PARAMETERS = [pytest.param(case, seed, id=f"{name}-{seed}") for name, case in CASES.items() for seed in seeds(case)]


@pytest.mark.slow
@pytest.mark.parametrize(("case", "seed"), PARAMETERS)
def test_the_verdict_is_the_truth(case: OracleCase, seed: int) -> None:
    module, args = case.build(seed)
    check = judge(module, args, seed=seed, dynamic_shapes=case.dynamic_shapes, name=case.name)
    expected = Verdict.FAITHFUL if case.right else Verdict.DIVERGENT
    assert check.verdict is expected, told(check)
