"""An ONNX source that is run as it is: no conversion, only the runtime can go wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trueport.adapters.converters._onnx_to_onnx import save
from trueport.adapters.float64.onnx_program import OnnxProgram
from trueport.adapters.protocols import Checkpoint, ConverterOptions
from trueport.core.result import NodeRef
from trueport.core.subject import Subject
from trueport.core.taxonomy import Stage
from trueport.core.versions import package_versions


class Unconverted:
    """Hands over the source itself; it takes the place of a converter."""

    name = "none"
    frameworks = frozenset({"onnx"})
    plan: tuple[tuple[Stage, str], ...] = ((Stage.EXPORT, "the file itself"),)

    def convert(self, subject: Subject, options: ConverterOptions) -> Iterator[Checkpoint]:
        """Yields the source, as the file that it is or written to one."""
        path = subject.path
        if path is None:
            path = options.folder / "model.onnx"
            save(subject.model, path)
        program = OnnxProgram(subject.model, options.input_names)
        yield Checkpoint(Stage.EXPORT, self.plan[0][1], program, model=subject.model, path=path, is_source=True)

    def switches(self, model: Any, options: ConverterOptions) -> None:
        """Returns nothing: there is no optimizer whose parts could be switched off."""
        del model, options

    def blame(self, error: BaseException) -> tuple[NodeRef, ...]:
        """Returns nothing: nothing is converted."""
        del error
        return ()

    def versions(self) -> dict[str, str]:
        """Returns the version of onnx, which reads the file."""
        return package_versions("onnx")
