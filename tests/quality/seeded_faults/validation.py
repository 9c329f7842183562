"""Files that mean what they should but are no valid ONNX: the checker rejects them and the target runtime refuses them.

They are made while the file is written. Evaluated node by node they give the right numbers, so that nothing before
the validation can notice.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.onnx_cpp2py_export import checker as native_checker

from tests.quality.seeded_faults.fault import (
    ACTIONS,
    DEADLY,
    DYNAMO,
    SCRIPT,
    VALIDATION,
    Converter,
    SeededFault,
    acting_first,
    replaced,
)
from tests.quality.seeded_faults.file_writing import editing_file
from tests.quality.seeded_faults.subjects import NETWORK


def future_version(model: onnx.ModelProto) -> None:
    model.ir_version = 99


def wrong_inner_type(model: onnx.ModelProto) -> None:
    name = model.graph.node[0].output[0]
    kept = [value for value in model.graph.value_info if value.name != name]
    del model.graph.value_info[:]
    model.graph.value_info.extend([*kept, helper.make_tensor_value_info(name, TensorProto.INT64, [4, 16])])


def double_initializer(model: onnx.ModelProto) -> None:
    tensor = next(tensor for tensor in model.graph.initializer if tensor.name.endswith("bias"))
    tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))


def surplus_node_outputs(model: onnx.ModelProto) -> None:
    model.graph.node[0].output.extend(["surplus_1", "surplus_2"])


def duplicated_input(model: onnx.ModelProto) -> None:
    model.graph.input.add().CopyFrom(model.graph.input[0])


@contextmanager
def _acting_in_checker(action: str) -> Iterator[None]:
    with ExitStack() as stack:
        for name in ("check_model", "check_model_path"):
            stack.enter_context(replaced(native_checker, name, acting_first(ACTIONS[action])))
        yield


def _for(converter: Converter) -> tuple[SeededFault, ...]:
    prefix = "dynamo" if converter == DYNAMO else "script"

    def invalid(name: str, edit: Callable[[Any], None], note: str) -> SeededFault:
        plant = partial(editing_file, edit)
        return SeededFault(f"{prefix}-validation-{name}", converter, VALIDATION, "crash", plant, NETWORK, note)

    return (
        invalid("future-ir-version", future_version, "The file claims a version of ONNX that does not exist"),
        invalid("wrong-inner-type", wrong_inner_type, "A value between two nodes is declared as int64"),
        invalid("double-initializer", double_initializer, "A bias is float64 beside float32: float64 hides it"),
        invalid("surplus-node-outputs", surplus_node_outputs, "A node has more outputs than its operator"),
        invalid("duplicated-input", duplicated_input, "The graph has the same input twice"),
        *(
            SeededFault(
                f"{prefix}-validation-{action}",
                converter,
                VALIDATION,
                "crash",
                partial(_acting_in_checker, action),
                NETWORK,
                f"The checker {action}",
                ends_process=True,
            )
            for action in sorted(DEADLY)
        ),
    )


FAULTS = (*_for(DYNAMO), *_for(SCRIPT))
