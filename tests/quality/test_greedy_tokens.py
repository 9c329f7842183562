"""Files of both halves of generation choose the source's tokens, and a damaged one is told from a tie."""

import numpy as np
import onnx
import pytest
from evaluation.greedy import NAMES, Files, agreement, converted, measured
from onnx import numpy_helper

from trueport.adapters.sources import load_subject

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("name", NAMES)
def test_tokens_agree_until_a_tie(name):
    found = measured(name, 16)
    assert found.wrong is None
    assert found.agreed == 16 or found.tie is not None


def test_a_wrong_cache_is_no_tie(tmp_path):
    prefill, decode = (load_subject(f"zoo:hf/gpt2-{half}") for half in ("prefill", "decode"))
    prompt_file, prompt_inputs = converted(prefill, tmp_path / "prefill")
    step_file, step_inputs = converted(decode, tmp_path / "decode")
    model = onnx.load(step_file)
    largest = max((t for t in model.graph.initializer if t.data_type == onnx.TensorProto.FLOAT), key=_size)
    values = numpy_helper.to_array(largest)
    largest.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(values[::-1]), largest.name))
    onnx.save(model, tmp_path / "wrong.onnx")
    found = agreement(prefill, Files(prompt_file, tmp_path / "wrong.onnx", (prompt_inputs, step_inputs)), steps=8)
    assert found.wrong is not None


def _size(tensor):
    return int(np.prod(tensor.dims))
