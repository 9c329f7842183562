"""Operators on strings and n-grams against ONNX Runtime, and what means different things is refused."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

from tests.unit.adapters.float64.onnx_models import one_node
from trueport.adapters.float64.onnx import Float64Evaluator
from trueport.core.errors import ToolError


def texts(*values):
    return np.asarray(values, dtype=object)


def model(op_type, inputs, *, outputs=1, **attributes):
    return one_node(op_type, inputs, outputs=outputs, opset=20, **attributes)


def agree(op_type, *inputs, outputs=1, **attributes):
    feeds = {f"x{i}": value for i, value in enumerate(inputs)}
    made = model(op_type, feeds, outputs=outputs, **attributes)
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    session = ort.InferenceSession(made.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    wanted, got = session.run(None, feeds), Float64Evaluator(made).run(feeds)
    for a, b in zip(wanted, got, strict=True):
        assert a.shape == b.shape
        assert a.tolist() == b.tolist()
    return got


def test_concatenation_broadcasts():
    agree("StringConcat", texts(["a", "b"], ["", "ü"]), texts("x", "yz"))


@pytest.mark.parametrize("delimiter", [None, "", ",", "--"])
@pytest.mark.parametrize("most", [None, 0, 1, 5])
def test_splitting(delimiter, most):
    chosen = {"delimiter": delimiter, "maxsplit": most}
    attributes = {name: value for name, value in chosen.items() if value is not None}
    agree("StringSplit", texts("a,b,,c", " a  b c", "x--y--", ","), outputs=2, **attributes)


def test_splitting_an_empty_string():
    """As in the standard's reference; ONNX Runtime finds no part even where there is a delimiter."""
    feeds = {"x0": texts("", "a")}
    assert Float64Evaluator(model("StringSplit", feeds, outputs=2, delimiter=",")).run(feeds)[1].tolist() == [1, 1]
    assert Float64Evaluator(model("StringSplit", feeds, outputs=2)).run(feeds)[1].tolist() == [0, 1]


def test_splitting_nothing():
    parts, counts = agree("StringSplit", np.zeros((2, 0), dtype=object), outputs=2)
    assert parts.shape == (2, 0, 0)
    assert counts.shape == (2, 0)


@pytest.mark.parametrize("action", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("exact", [0, 1])
def test_normalizing(action, exact):
    x = texts("Monday", "tuesday", "MONDAY", "Monday blues")
    how = {"case_change_action": action, "is_case_sensitive": exact, "locale": "C"}
    agree("StringNormalizer", x, **how, stopwords=["monday", "Monday"])
    agree("StringNormalizer", x[None], **how)


def test_normalizing_leaves_one_empty_string_where_nothing_is_left():
    assert agree("StringNormalizer", texts("a", "a"), stopwords=["a"], locale="C")[0].tolist() == [""]


def test_normalizing_a_matrix_is_refused():
    feeds = {"x0": texts(["a"], ["b"])}
    with pytest.raises(ToolError, match=r"shape \[C\] or \[1, C\]"):
        Float64Evaluator(model("StringNormalizer", feeds)).run(feeds)


@pytest.mark.parametrize("pattern", [r"a+b", r"\w+@[a-z]+\.(com|org)", r"(?P<n>\d)x?", r"[^abc]*", r"\\d", r"a\.b$"])
def test_matching(pattern):
    agree(
        "RegexFullMatch", texts("aab", "me@you.org", "3x", "", "xyz", "\\d", "a.b", "mé@you.com", "٣x"), pattern=pattern
    )


@pytest.mark.parametrize("pattern", [r"(a)\1", r"(?=a)a", r"\pL+", r"[[:alpha:]]", r"a++", r"(?i)a", r"a\z", "("])
def test_an_expression_that_only_one_of_both_knows_has_no_kernel(pattern):
    assert Float64Evaluator(model("RegexFullMatch", {"x0": texts("a")}, pattern=pattern)).missing


WORDS = {
    "mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0, "ngram_counts": [0, 3],
    "ngram_indexes": [0, 1, 2, 3, 4], "pool_strings": ["a", "b", "c", "a", "b", "b", "c"],
}  # fmt: skip


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("most", [0, 1, 3])
@pytest.mark.parametrize("sizes", [(1, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("weights", [None, [0.5, 1.0, 2.0, 4.0, 8.0]])
def test_counting_n_grams(mode, most, sizes, weights):
    attributes = {
        **WORDS,
        "mode": mode,
        "max_skip_count": most,
        "min_gram_length": sizes[0],
        "max_gram_length": sizes[1],
    }
    given = {} if weights is None else {"weights": weights}
    agree("TfIdfVectorizer", texts(list("abcab"), list("bbcca")), **attributes, **given)
    agree("TfIdfVectorizer", texts(*"acbac"), **attributes, **given)


def test_counting_n_grams_of_numbers_into_given_places():
    numbers = {"pool_int64s": [1, 2, 3, 1, 2, 2, 3], "ngram_indexes": [4, 3, 2, 1, 0]}
    attributes = {**{k: v for k, v in WORDS.items() if k not in ("pool_strings",)}, **numbers}
    agree("TfIdfVectorizer", np.asarray([[1, 2, 3, 1, 2]], np.int64), **attributes)


def test_weights_for_n_grams_in_another_order_have_no_kernel():
    attributes = {**WORDS, "mode": "IDF", "ngram_indexes": [1, 0, 2, 3, 4], "weights": [1.0, 2.0, 3.0, 4.0, 5.0]}
    assert Float64Evaluator(model("TfIdfVectorizer", {"x0": texts("a")}, **attributes)).missing
