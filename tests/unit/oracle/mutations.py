"""Right results and what may go wrong with them: the table that every comparator has to detect, row by row.

Run as a program it prints, as JSON, what each level says to each row; the test compares that under several hash seeds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueport.bisect.judge import Judgement, judge_arithmetic, judge_meaning
from trueport.bisect.references import References, collect
from trueport.core.taxonomy import Status
from trueport.inputs.draw import InputSet
from trueport.oracle.compare import ReferenceOutput, compare_arithmetic, compare_fixed, compare_meaning

RTOL = 2e-6
LEVELS = ("compare_meaning", "compare_arithmetic", "compare_fixed", "judge_meaning", "judge_arithmetic", "judge_fixed")
COMPARE_LEVELS = frozenset(LEVELS[:3])
MEANING_VALUES = frozenset({"compare_meaning"})
"""A value alone does not show that it stands for another narrow float: `judge_meaning` compares declared types."""


@dataclass(frozen=True)
class Row:
    """A right result and what came instead.

    `hidden_from` names the levels that cannot see it by construction; `unstable` marks elements as tainted.
    """

    name: str
    right: tuple[np.ndarray, ...]
    came: tuple[Any, ...]
    hidden_from: frozenset[str] = frozenset()
    unstable: np.ndarray | None = None
    raises: bool = False


RNG = np.random.default_rng(7)
X = RNG.normal(size=(4, 3)).astype(np.float32) + np.float32(3)
SQUARE = RNG.normal(size=(3, 3)).astype(np.float32)
VECTOR = np.array([1.5, -2.25, 3.0], np.float32)
HALF = np.array([1.5, -2.25, 3.0], np.float16)
LONG = RNG.normal(size=(10_000, 2)).astype(np.float32)
INTS = np.arange(6, dtype=np.int64).reshape(2, 3)
SMALL = np.array([1, 2, 250], np.uint8)
FLAGS = np.array([True, False, True])
COMPLEX = np.array([1 + 2j, 3 - 1j], np.complex64)
WITH_NAN = np.array([1.0, np.nan, 3.0], np.float32)
WITH_INF = np.array([1.0, np.inf, -np.inf], np.float32)
LARGEST = np.array([1.0, np.finfo(np.float32).max], np.float32)
SCALAR = np.array(2.5, np.float32)
EMPTY = np.zeros((0, 3), np.float32)
ZEROS = np.zeros(3, np.float32)
ROWS_OF_SCALE = np.array([[1e30, 1e30], [1.0, 2.0]], np.float32)


def put(array: np.ndarray, index: Any, value: Any) -> np.ndarray:
    """Returns a copy with one element replaced."""
    changed = array.copy()
    changed[index] = value
    return changed


def one(name: str, right: np.ndarray, came: Any, hidden_from: frozenset[str] = frozenset()) -> Row:
    """Returns a row with one output."""
    return Row(name, (right,), (came,), hidden_from)


MUTATIONS = (
    # existence
    Row("missing output", (X, VECTOR), (X,)),
    Row("no output at all", (X,), ()),
    Row("extra output", (X,), (X, VECTOR), COMPARE_LEVELS),
    Row("the same output twice", (X,), (X, X), COMPARE_LEVELS),
    one("None", X, None),
    one("list instead of array", VECTOR, VECTOR.tolist()),
    one("tuple of arrays", VECTOR, (VECTOR,)),
    one("Python number instead of scalar array", SCALAR, 2.5),
    one("text", SCALAR, "2.5"),
    one("objects in an array", VECTOR, VECTOR.astype(object)),
    Row("fewer runs: the second one raises", (X,), (X,), COMPARE_LEVELS, raises=True),
    # rank and shape
    one("unequal shape", X, X[:, :2].copy()),
    one("truncated", X, X[:3].copy()),
    one("padded", X, np.vstack([X, X[:1]])),
    one("broadcastable (3,) for (4, 3)", np.tile(VECTOR, (4, 1)), VECTOR),
    one("broadcastable (4, 3) for (3,)", VECTOR, np.tile(VECTOR, (4, 1))),
    one("(1,) for ()", SCALAR, SCALAR.reshape(1)),
    one("() for (1,)", SCALAR.reshape(1), SCALAR),
    one("(3, 1) for (3,)", VECTOR, VECTOR.reshape(3, 1)),
    one("(1, 3) for (3,)", VECTOR, VECTOR.reshape(1, 3)),
    one("(1, 3) for (4, 3) of equal rows", np.tile(VECTOR, (4, 1)), VECTOR.reshape(1, 3)),
    one("flattened", X, X.ravel()),
    one("empty for non-empty", X, EMPTY),
    one("non-empty for empty", EMPTY, X),
    one("two empty ones of different shape", EMPTY, np.zeros((0, 4), np.float32)),
    one("two empty ones of different rank", EMPTY, np.zeros(0, np.float32)),
    one("transposed, not square", X, X.T.copy()),
    # type
    one("float64 for float32", X, X.astype(np.float64), MEANING_VALUES),
    one("float32 for float64", X.astype(np.float64), X, MEANING_VALUES),
    one("float32 for float16", HALF, HALF.astype(np.float32), MEANING_VALUES),
    one("float16 for float32", VECTOR, VECTOR.astype(np.float16), MEANING_VALUES),
    one("int32 for int64", INTS, INTS.astype(np.int32)),
    one("int64 for int32", INTS.astype(np.int32), INTS),
    one("uint64 for int64", INTS, INTS.astype(np.uint64)),
    one("float32 for int64", INTS, INTS.astype(np.float32)),
    one("int64 for float32", VECTOR.round(), VECTOR.round().astype(np.int64)),
    one("int8 for bool", FLAGS, FLAGS.astype(np.int8)),
    one("bool for int8", FLAGS.astype(np.int8), FLAGS),
    one("float32 for bool", FLAGS, FLAGS.astype(np.float32)),
    one("real part only", COMPLEX, COMPLEX.real.copy()),
    # what is not finite
    one("NaN for a number", X, put(X, (2, 1), np.nan)),
    one("number for NaN", WITH_NAN, put(WITH_NAN, 1, 2.0)),
    one("zero for NaN", WITH_NAN, put(WITH_NAN, 1, 0.0)),
    one("NaN in another place", WITH_NAN, np.array([np.nan, 1.0, 3.0], np.float32)),
    one("all NaN", X, np.full_like(X, np.nan)),
    one("+inf for -inf", WITH_INF, put(WITH_INF, 2, np.inf)),
    one("NaN for inf", WITH_INF, put(WITH_INF, 1, np.nan)),
    one("inf for NaN", WITH_NAN, put(WITH_NAN, 1, np.inf)),
    one("number for inf", WITH_INF, put(WITH_INF, 1, np.finfo(np.float32).max)),
    one("inf for the largest number", LARGEST, put(LARGEST, 1, np.inf)),
    # values
    one("one element off by 1e-3", X, put(X, (3, 2), X[3, 2] * np.float32(1.001))),
    one("one row of 10,000 wrong", LONG, put(LONG, 9_876, LONG[9_876] + np.float32(0.01))),
    one("small row wrong beside a huge one", ROWS_OF_SCALE, put(ROWS_OF_SCALE, (1, 0), 1.001)),
    one("scaled by 1 + 1e-5", X, (X * np.float32(1 + 1e-5)).astype(np.float32)),
    one("sign flipped", VECTOR, -VECTOR),
    one("absolute value", VECTOR, np.abs(VECTOR)),
    one("tiny for zero", ZEROS, put(ZEROS, 1, 1e-30)),
    one("zero throughout", X, np.zeros_like(X)),
    one("constant mean", X, np.full_like(X, X.mean())),
    one("rows permuted", X, X[[1, 0, 2, 3]]),
    one("reversed", VECTOR, VECTOR[::-1]),
    one("transposed square", SQUARE, SQUARE.T.copy()),
    one("rounded to float16", X, X.astype(np.float16).astype(np.float32)),
    one("complex conjugate", COMPLEX, COMPLEX.conj()),
    one("one flag turned", FLAGS, put(FLAGS, 1, True)),
    one("all flags turned", FLAGS, ~FLAGS),
    one("integer off by one", INTS, put(INTS, (1, 2), 6)),
    one("all integers off by one", INTS, INTS + 1),
    one("largest integer off by one", np.array([2**62], np.int64), np.array([2**62 + 1], np.int64)),
    one("uint8 wrapped around", SMALL, SMALL + np.uint8(10)),
    one("uint8 saturated", SMALL, put(SMALL, 2, 255)),
    one("masked array that hides its faults", X, np.ma.masked_array(X + 1, mask=True)),
    one("masked integers that hide their faults", INTS, np.ma.masked_array(INTS + 1, mask=True)),
    Row("two outputs swapped", (VECTOR, -VECTOR), (-VECTOR, VECTOR)),
    Row("second output repeats the first", (VECTOR, -VECTOR), (VECTOR, VECTOR)),
    Row("last of three wrong", (X, VECTOR, INTS), (X, VECTOR, INTS + 1)),
    Row(
        "wrong outside of the tainted elements", (VECTOR,), (put(VECTOR, 0, 9.0),),
        unstable=np.array([False, True, True]),
    ),
)  # fmt: skip

CONTROLS = (
    one("the same", X, X),
    one("a copy in another memory order", X, np.asfortranarray(X)),
    one("a view that is not contiguous", X, np.repeat(X, 2, axis=1)[:, ::2]),
    one("another byte order", VECTOR, VECTOR.astype(">f4")),
    one("-0.0 for 0.0", ZEROS, -ZEROS),
    one("0.0 for -0.0", -ZEROS, ZEROS),
    one("NaN in the same place", WITH_NAN, WITH_NAN.copy()),
    one("infinities in the same place", WITH_INF, WITH_INF.copy()),
    one("empty of the same shape", EMPTY, EMPTY.copy()),
    one("scalar", SCALAR, SCALAR.copy()),
    one("float16", HALF, HALF.copy()),
    one("complex", COMPLEX, COMPLEX.copy()),
    one("integers", INTS, INTS.copy()),
    one("flags", FLAGS, FLAGS.copy()),
    one("the largest number", LARGEST, LARGEST.copy()),
    one("one last place off", X, np.nextafter(X, np.float32(9)), frozenset({"compare_meaning", "judge_meaning"})),
    Row("several outputs", (X, INTS, FLAGS), (X, INTS, FLAGS)),
    Row("two equal outputs", (X, X), (X, X)),
    Row("no outputs on both sides", (), ()),
    Row(
        "wrong at a tainted element", (VECTOR,), (put(VECTOR, 1, 9.0),), frozenset({"judge_fixed"}),
        unstable=np.array([False, True, False]),
    ),
)  # fmt: skip


# ---------------------------------------------------------------------- what each level says


@dataclass(frozen=True)
class Wide:
    """An output in float64 with its real type."""

    value: Any
    dtype: str


@dataclass(frozen=True)
class FakeReference:
    """The source at one input set."""

    outputs: tuple[ReferenceOutput, ...]
    real: tuple[np.ndarray, ...]


class FakeSource:
    """Answers the same outputs for every input set."""

    def __init__(self, row: Row) -> None:
        self._row = row

    def reference(self, inputs: InputSet, number: int, draws: Any) -> FakeReference:
        return FakeReference(tuple(references(self._row)), self._row.right)

    def real(self, inputs: InputSet, *, fresh_random: bool) -> tuple[np.ndarray, ...]:
        return self._row.right


def widen(value: Any) -> Any:
    """Returns a floating-point array as float64, a complex one as complex128, anything else as it is."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fc":
        return value
    return value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)


def references(row: Row) -> list[ReferenceOutput]:
    """Returns the right outputs with the floors of an ordinary small model."""
    made = []
    for i, right in enumerate(row.right):
        wide = widen(right)
        floating = right.dtype.kind in "fc"
        size = np.where(np.isfinite(wide), np.abs(wide), 0.0) if floating else np.zeros(right.shape)
        unit = np.finfo(right.dtype).eps / 2 if floating else 0.0
        taint = row.unstable if row.unstable is not None else np.zeros(right.shape, bool)
        made.append(ReferenceOutput(f"y{i}", right.dtype.name, wide, size * 2.0**-53, size * unit, taint, 4))
    return made


def _compared(row: Row, compare: Callable[[ReferenceOutput, Any], Any], *, wide: bool) -> bool:
    outputs = [widen(c) if wide else c for c in row.came]
    outputs += [None] * (len(row.right) - len(outputs))
    return any(compare(r, c).different for r, c in zip(references(row), outputs, strict=False))


def _collected(row: Row) -> References:
    sets = [InputSet(label, "redrawn", (np.array(i),)) for i, label in enumerate(("first", "second"))]
    return collect(FakeSource(row), sets, lambda _: None)


def _outputs(row: Row, inputs: InputSet, made: Callable[[Any], Any]) -> list[Any]:
    """The first run is right; what is wrong comes with the second."""
    if inputs.label == "first":
        return [made(r) for r in row.right]
    if row.raises:
        raise IndexError("there was no second run")
    return [made(c) for c in row.came]


def _wide(value: Any) -> Wide:
    return Wide(widen(value), value.dtype.name if isinstance(value, np.ndarray) else "")


def judged(row: Row, level: str) -> Judgement:
    """Returns the judgement of two runs, the first right, the second as it came."""
    kept = _collected(row)
    if level == "judge_meaning":

        def noisy(inputs: InputSet, draws: int) -> list[list[np.ndarray]]:
            return [[np.asarray(widen(c)) for c in row.came] for _ in range(draws)]

        return judge_meaning(lambda inputs: _outputs(row, inputs, _wide), noisy, kept, counts=lambda _: True)
    fixed = (RTOL, 0.0) if level == "judge_fixed" else None
    return judge_arithmetic(
        lambda inputs: _outputs(row, inputs, lambda v: v), lambda _: None, kept, counts=lambda _: True, fixed=fixed
    )


def detected(row: Row, level: str) -> bool:
    """Returns whether this level calls what came different."""
    if level == "compare_meaning":
        return _compared(row, compare_meaning, wide=True)
    if level == "compare_arithmetic":
        return _compared(row, compare_arithmetic, wide=False)
    if level == "compare_fixed":
        return _compared(row, lambda r, c: compare_fixed(r, c, rtol=RTOL, atol=0.0), wide=False)
    return judged(row, level).status in (Status.DIVERGED, Status.CRASHED)


def table() -> dict[str, list[bool]]:
    """Returns for each row what the levels say, in the order of `LEVELS`."""
    return {row.name: [detected(row, level) for level in LEVELS] for row in (*MUTATIONS, *CONTROLS)}


if __name__ == "__main__":
    json.dump(table(), sys.stdout)
