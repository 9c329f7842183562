"""The last step of every source: examples are chosen, drawn and checked, and the subject is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from trueport.adapters.sources.inputs import examples_from_option, with_input_shapes
from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.torch_inputs import misfit
from trueport.core.errors import UsageError
from trueport.core.subject import Example, Subject


@dataclass(frozen=True)
class LoadedSource:
    """What the file of a source kind hands over; the fields are those of `Subject`, `examples` may be empty."""

    name: str
    sha256: str
    model: nn.Module
    examples: tuple[Example, ...] = ()
    dynamic_shapes: Any = None
    export_options: Mapping[str, Any] = field(default_factory=dict)
    program: Any = None


def subject_from(loaded: LoadedSource, request: SourceRequest) -> Subject:
    """Returns the subject of a loaded source with the inputs that the request asks for.

    Raises:
        UsageError: there are no inputs, or they do not fit the module.
    """
    examples = loaded.examples
    if request.inputs is not None:
        examples = examples_from_option(request.inputs, loaded.model, examples, request.seed)
    if request.input_shapes:
        examples = with_input_shapes(request.input_shapes, loaded.model, examples, request.seed)
    if not examples:
        raise UsageError(
            f"'{request.spec}' is a module without example inputs; give them in one of three ways: "
            "an attribute `inputs` in the file or of the named object, --inputs file.npz or file.py:NAME, "
            "or --input-shape name:[1,3,224,224] for every input"
        )
    check_examples(loaded.model, examples, request.spec)
    return Subject(
        name=loaded.name,
        framework="torch",
        origin=request.spec,
        sha256=loaded.sha256,
        model=loaded.model,
        examples=examples,
        dynamic_shapes=loaded.dynamic_shapes,
        export_options=loaded.export_options,
        program=loaded.program,
    )


def check_examples(model: nn.Module, examples: tuple[Example, ...], where: str) -> None:
    """Raises a `UsageError` for the first example with which `model.forward` cannot be called."""
    for example in examples:
        problem = misfit(model, example.args, example.kwargs)
        if problem is not None:
            raise UsageError(
                f"the input set '{example.label}' of '{where}' does not fit: {problem}; "
                "a tuple holds the positional arguments of one call, a dict its keyword arguments, "
                "and a list several input sets"
            )
