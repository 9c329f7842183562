"""The Keras zoo: its table, its networks' scale, and that the seed alone decides the weights."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest

from trueport.adapters.float64.tensorflow.functions import program_of_source
from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.zoo.keras_architectures import KERAS
from trueport.adapters.sources.zoo.keras_models import load
from trueport.core.errors import UsageError

SMALL = [name for name, entry in KERAS.items() if not entry.application]


def _loaded(name, seed=0):
    return load(SourceRequest(f"zoo:keras/{name}", False, None, MappingProxyType({}), seed))


def test_the_table_holds_both_kinds():
    assert len(KERAS) - len(SMALL) >= 8
    assert len(SMALL) >= 6


@pytest.mark.parametrize("name", SMALL)
def test_outputs_keep_their_scale(name):
    subject = _loaded(name)
    for output in subject.model(subject.examples[0].kwargs):
        assert 0.1 < float(output.std()) < 10


@pytest.mark.parametrize("name", SMALL)
def test_the_float64_replay_meets_what_keras_computes(name):
    subject = _loaded(name)
    values = subject.examples[0].kwargs
    program = program_of_source(subject.model)
    assert program.coarse == ()
    for value, real in zip(program.run(values), subject.model(values), strict=True):
        np.testing.assert_allclose(value, real, rtol=1e-5, atol=2e-6 * np.abs(real).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mobilenet", "efficientnet-b0", "vgg16"])
def test_outputs_of_applications_keep_their_scale(name):
    subject = _loaded(name)
    for output in subject.model(subject.examples[0].kwargs):
        assert 0.05 < float(output.std()) < 20


def test_the_seed_decides_the_weights():
    first, again, other = _loaded("mlp", 1), _loaded("mlp", 1), _loaded("mlp", 2)
    assert first.sha256 == again.sha256 != other.sha256
    values = first.examples[0].kwargs
    np.testing.assert_array_equal(values["features"], again.examples[0].kwargs["features"])


def test_an_unknown_name_lists_the_known():
    with pytest.raises(UsageError, match="mobilenet-v2"):
        _loaded("mobilenet-v9")
