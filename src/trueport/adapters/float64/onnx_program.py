"""An ONNX model as an executable: fed by name, evaluated in float64, with noise in the constants it computed itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from trueport.adapters.float64.constants import KnownNumbers
from trueport.adapters.float64.onnx import Float64Evaluator, Node
from trueport.adapters.float64.onnx.plan import Perturbation, Step
from trueport.adapters.float64.onnx.rounding import Budget, Rounding, noisy_runs
from trueport.adapters.protocols import NoFloat64Error, Wide
from trueport.inputs.draw import InputSet
from trueport.onnxgraph.interface import Interface, read_interface
from trueport.oracle.fingerprint import Fingerprint
from trueport.oracle.units import FLOAT_TYPES

Array = NDArray[Any]

CONSTANT_PLACES = 1.0
"""By how many last places a computed constant is moved (uniformly up to that), in units of 2u."""


def real_dtype(name: str) -> np.dtype[Any]:
    """Returns the NumPy type of this name; bfloat16 comes from ml_dtypes."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)  # type: ignore[no-any-return]  # ml_dtypes is not typed
    return np.dtype(name)


class ForeignCasts:
    """Carries out casts to types that the source does not use; pass it as `perturb` of a run."""

    def __init__(self, known: KnownNumbers) -> None:
        self._known = known

    def __call__(self, step: Step, arguments: list[Any], index: int, value: Array) -> Array:
        """Returns the value as the narrow type holds it, where the source has no such type."""
        del arguments
        dtype = step.call.output_types[index]
        if step.call.node.op_type not in ("Cast", "CastLike") or not self._known.is_foreign(dtype):
            return value
        with np.errstate(all="ignore"):
            return np.asarray(value.astype(real_dtype(dtype)).astype(np.float64))


class ComputedAttributes:
    """Moves what operators with computed numbers among their attributes give: 1/6 as float32 is off by a last place."""

    def __init__(self, known: KnownNumbers, rng: np.random.Generator) -> None:
        self._known = known
        self._rng = rng

    def __call__(self, step: Step, arguments: list[Any], index: int, value: Array) -> Array:
        """Returns the value with one random error for the whole tensor, where an attribute was computed."""
        del arguments, index
        numbers = [v for v in step.call.node.attributes.values() if isinstance(v, float)]
        if not numbers or not self._known.computed(np.asarray(numbers)).any() or value.dtype != np.float64:
            return value
        return np.asarray(value * (1 + 2 * FLOAT_TYPES["float32"].unit_roundoff * self._rng.uniform(-1, 1)))


class OnnxProgram:
    """Evaluates a `ModelProto` in float64.

    Args:
        model: with its weights inside.
        leaf_names: names of the subject's tensor inputs, in the order of an input set's arrays.
        name_map: input of the model -> leaf of the subject, where names differ.
    """

    def __init__(
        self, model: onnx.ModelProto, leaf_names: Sequence[str], name_map: Mapping[str, str] | None = None
    ) -> None:
        self.model = model
        self.interface: Interface = read_interface(model)
        self.pairs = self.interface.pair(leaf_names, name_map or {})
        self._masks: tuple[KnownNumbers, dict[str, Array]] | None = None

    @cached_property
    def _evaluator(self) -> Float64Evaluator:
        return Float64Evaluator(self.model)

    @cached_property
    def _constant_values(self) -> frozenset[str]:
        """Names of the values that depend on no input of the model."""
        graph = self.model.graph
        constant = {t.name for t in graph.initializer} | {""}
        for node in graph.node:
            if all(name in constant for name in node.input) and not any(a.HasField("g") for a in node.attribute):
                constant.update(node.output)
        return frozenset(constant - {""})

    def feeds(self, inputs: InputSet) -> dict[str, Array]:
        """Returns the model's inputs by name.

        Raises:
            InterfaceError: an input of the model has no counterpart, or a declared size does not fit.
        """
        return self.interface.feeds(self.pairs, inputs.arrays)

    def evaluate(self, inputs: InputSet, known: KnownNumbers) -> list[Wide]:
        """Returns the outputs in float64."""
        values = self._run(inputs, self._literals(known), ForeignCasts(known))
        declared = self._evaluator.output_dtypes
        return [
            Wide(value, dtype if value.dtype.kind in "fc" else value.dtype.name)
            for value, dtype in zip(values, declared, strict=True)
        ]

    def noisy(self, inputs: InputSet, *, draws: int, seed: int, known: KnownNumbers) -> list[list[Array]]:
        """Returns evaluations with the noise of float64, and computed constants moved by a last place."""
        computed = self._computed(known)

        def run(rounding: Rounding, rng: np.random.Generator) -> list[Array]:
            coherent = bool(rng.integers(2))
            moved = {name: self._move(name, mask, rng, coherent=coherent) for name, mask in computed.items()}
            moved = {**self._literals(known), **moved}
            foreign, attributes = ForeignCasts(known), ComputedAttributes(known, rng)
            folded = Rounding(rng, coherent=coherent, wide=False)

            def noise(step: Step, arguments: list[Any], index: int, value: Array) -> Array:
                # What depends on no input may be folded in the declared type, here or by the next step of the road.
                constant = step.call.node.outputs[0] in self._constant_values
                return (folded if constant else rounding)(step, arguments, index, value)

            return self._run(inputs, moved, lambda s, a, i, v: noise(s, a, i, attributes(s, a, i, foreign(s, a, i, v))))

        return noisy_runs(run, draws=draws, seed=seed, wide=True)

    def rounded(
        self, inputs: InputSet, *, draws: int, seed: int, budgets: Mapping[str, Budget]
    ) -> tuple[list[Array], list[list[Array]]]:
        """Returns the evaluation without noise, and evaluations with the rounding noise of the declared types.

        Args:
            inputs: one input set.
            draws: number of noisy evaluations.
            seed: of the noise.
            budgets: what the runtime's kernels may be off by.
        """
        runs = noisy_runs(
            lambda rounding, _: self._run(inputs, None, rounding), draws=draws, seed=seed, wide=False, budgets=budgets
        )
        return self._run(inputs, None), runs

    def fingerprints(self, inputs: InputSet) -> list[Fingerprint]:
        """Returns the fingerprints of all floating-point values that the model computes or holds."""
        found: list[Fingerprint] = []

        def observe(_node: Node, _names: list[str], values: list[Any]) -> None:
            found.extend(Fingerprint.of(v) for v in values if isinstance(v, np.ndarray) and v.dtype.kind == "f")

        self._evaluator.run(self.feeds(inputs), observe=observe)
        return found

    def _literals(self, known: KnownNumbers) -> dict[str, Array]:
        """Literals written in double precision and cast down, as a source without doubles holds them."""
        if "float64" in known.types:
            return {}
        with np.errstate(over="ignore"):
            return {
                name: constant.value.astype(np.float32).astype(np.float64)
                for name, constant in self._evaluator.constants.items()
                if constant.dtype == "float64"
            }

    def _computed(self, known: KnownNumbers) -> dict[str, Array]:
        """Returns where constants were computed by the converter; found once for each source."""
        if self._masks is None or self._masks[0] is not known:
            self._masks = (known, self._find_computed(known))
        return self._masks[1]

    def _find_computed(self, known: KnownNumbers) -> dict[str, Array]:
        masks = {
            name: known.computed(constant.value)
            for name, constant in self._evaluator.constants.items()
            if constant.dtype in FLOAT_TYPES and constant.dtype != "float64"
        }
        return {name: mask for name, mask in masks.items() if mask.any()}

    def _move(self, name: str, mask: Array, rng: np.random.Generator, *, coherent: bool) -> Array:
        constant = self._evaluator.constants[name]
        wide = np.asarray(constant.value, dtype=np.float64)
        size = CONSTANT_PLACES * 2 * FLOAT_TYPES[constant.dtype].unit_roundoff * np.abs(wide) * mask
        if coherent:
            return np.asarray(wide + size * (1 if rng.integers(2) else -1))
        return np.asarray(wide + size * rng.uniform(-1, 1, wide.shape))

    def _run(
        self, inputs: InputSet, constants: Mapping[str, Array] | None, rounding: Perturbation | None = None
    ) -> list[Array]:
        if self._evaluator.missing:
            raise NoFloat64Error(self._evaluator.missing)
        return [
            np.asarray(value)
            for value in self._evaluator.run(self.feeds(inputs), constants=constants, perturb=rounding)
        ]
