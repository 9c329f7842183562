"""`zoo:keras/NAME`: networks of keras.applications and small recurrent and attention networks, without any download."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueport.adapters.sources.global_state import preserved_global_state
from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.tensorflow_examples import default_shape, drawn
from trueport.adapters.sources.tensorflow_setup import import_tensorflow
from trueport.adapters.sources.tensorflow_source import traced
from trueport.adapters.sources.tensorflow_subject import sha256_of_variables, subject_of_source
from trueport.adapters.sources.wording import choices
from trueport.adapters.sources.zoo.keras_architectures import KERAS, KerasEntry
from trueport.core.errors import UsageError
from trueport.core.subject import Subject

_PREFIX = "zoo:keras/"
_CLASSES = 10
_CALIBRATION_ROWS = 32


def load(request: SourceRequest) -> Subject:
    """Returns the subject of a Keras network, with weights and example drawn from the seed of the request.

    Raises:
        UsageError: no network of that name.
        MissingToolError: TensorFlow is not installed.
    """
    name = request.spec.removeprefix(_PREFIX)
    if name not in KERAS:
        raise UsageError(f"the zoo has no model '{request.spec}'{choices(name, KERAS, 'it has')}")
    import_tensorflow()
    model = build(KERAS[name], request.seed)
    return subject_of_source(
        traced(model, None, {}, f"'{request.spec}'"),
        None,
        name=name,
        sha256=sha256_of_variables(name, model.weights),
        request=request,
        where=f"the inputs of '{request.spec}'",
    )


def build(entry: KerasEntry, seed: int) -> Any:
    """Returns the network; equal seeds give equal weights, whatever ran before.

    A classifier gives what a softmax would be taken of, because numbers near 1/1000 hide errors.
    """
    from trueport.adapters.sources.zoo.keras_weights import calibrate, draw_weights

    # The constructors draw weights of their own; they are all drawn anew.
    with preserved_global_state(seed):
        model = _constructed(entry)
        draw_weights(model, np.random.default_rng(seed))
        source = traced(model, None, {}, entry.name)
        rows = {i.name: (_CALIBRATION_ROWS, *default_shape(i)[1:]) for i in source.inputs}
        values = drawn(source, rows, seed)
        calibrate(model, [values[i.name] for i in source.inputs])
    return model


def _constructed(entry: KerasEntry) -> Any:
    if not entry.application:
        from trueport.adapters.sources.zoo.keras_networks import NETWORKS

        return NETWORKS[entry.name]()
    import keras

    application = getattr(keras.applications, entry.application)
    image = keras.Input((entry.size, entry.size, 3), name="image")
    if not entry.top:
        return application(weights=None, include_top=False, pooling="avg", input_tensor=image)
    return application(weights=None, classes=_CLASSES, classifier_activation=None, input_tensor=image)
