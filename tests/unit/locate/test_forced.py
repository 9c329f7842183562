"""Each node fed the source's own values: who introduces an error, and who only passes it on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.unit.locate.toy import Toy, chain, node
from trueport.core.trace import TracedNode
from trueport.locate.forced import Faults, find_faults
from trueport.locate.pairs import Pairing


def found(good: Toy, bad: Toy) -> Faults:
    """Returns the faults of a candidate."""
    want = good.run().values[good.outputs[0]]

    def score(outputs: Sequence[Any]) -> float:
        if outputs[0].shape != want.shape:
            return 1e300
        return float(np.max(np.abs(outputs[0] - want) / (np.abs(want) * 2.0**-50 + 1e-300)))

    pairing = Pairing(good.run())
    bad.follow(pairing.see, None)
    return find_faults(bad.follow, good.run(), pairing.pairs(), score)


def names(faults: Faults) -> list[str]:
    """Returns the names of the faulty values, the gravest first."""
    return [f.value for f in faults.faults]


def test_nothing_is_blamed_in_a_right_candidate() -> None:
    assert not found(chain(), chain()).faults
    assert found(chain(), chain()).judged == 6


def test_one_fault_is_blamed_and_what_follows_is_not() -> None:
    faults = found(chain(), chain().with_("h", lambda v: v * 0.5000001))
    assert names(faults) == ["h"]
    assert faults.cured


def test_independent_faults_are_all_found_the_gravest_first() -> None:
    bad = chain().with_("s", lambda v: np.sin(v) + 1e-6).with_("e", lambda v: np.exp(v) * 1.1)
    faults = found(chain(), bad)
    assert names(faults) == ["e", "s"]
    assert faults.severity[0] > faults.severity[1] > 32


def test_a_fault_behind_a_fault_is_found_although_the_first_spoils_what_it_takes() -> None:
    bad = chain().with_("e", lambda v: np.exp(v) * 1.1).with_("t", lambda v: np.tanh(v) + 1e-4)
    assert set(names(found(chain(), bad))) == {"e", "t"}


def test_rounding_is_no_fault() -> None:
    noisy = chain().with_("e", lambda v: np.exp(v) * (1 + 2.0**-51))
    assert not found(chain(), noisy).faults


def test_a_scale_moved_from_one_node_to_the_next_is_no_fault() -> None:
    # Both nodes differ on the source's own values, and together they are right: only the real fault is blamed.
    bad = (
        chain().with_("h", lambda v: v).with_("q", lambda v: np.square(v) * 0.25).with_("s", lambda v: np.sin(v) + 1e-5)
    )
    faults = found(chain(), bad)
    assert names(faults) == ["s"]
    assert {e.value for e in faults.harmless} == {"h", "q"}


def test_a_group_between_cuts_is_judged_as_one() -> None:
    good = chain()
    parts = list(good.nodes)
    parts[0:3] = [node("u", "Exp", ["x"], np.exp), node("q", "Pow", ["u"], lambda v: np.square(v) * 0.3)]
    faults = found(good, replace(good, nodes=tuple(parts)))
    assert names(faults) == ["q"]


def test_values_of_another_shape_are_faults_of_shape() -> None:
    good = chain()
    bad = good.with_("s", lambda v: np.sin(v)[:1])
    faults = found(good, bad)
    assert names(faults) == ["s"]
    assert "expected float64[4,6]" in faults.faults[0].comparison.detail


def test_an_integer_that_hangs_on_rounding_is_no_fault() -> None:
    x = np.array([1.0, 2.0, 3.0])
    source = Toy(
        (
            node("r", "Mul", ["x"], lambda v: v * (0.1 + 0.2)),
            node("f", "Floor", ["r"], lambda v: np.floor(v / 0.3).astype(np.int64)),
            node("y", "Add", ["f", "x"], np.add),
        ),
        {"x": x},
        ("y",),
    )
    fused = replace(
        source,
        nodes=(
            node(
                "f",
                "Floor",
                ["x"],
                lambda v: np.floor(v * (0.3 * (1 + 2.0**-52)) / 0.3 * (1 - 2.0**-53)).astype(np.int64),
            ),
            source.nodes[2],
        ),
    )
    assert all(f.value != "y" for f in found(source, fused).faults)


def test_nodes_keep_their_names() -> None:
    assert [n.name for n, _ in chain().renamed().nodes] == ["e", "h", "q", "t", "s", "y"]
    assert isinstance(chain().nodes[0][0], TracedNode)
