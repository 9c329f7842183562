"""An ONNX file that the user already has, in the place of a converter: its stages cannot be told apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import onnx

from trueport.adapters.float64.onnx_program import OnnxProgram
from trueport.adapters.protocols import Checkpoint, ConverterOptions
from trueport.core.errors import UsageError
from trueport.core.result import NodeRef
from trueport.core.subject import Subject
from trueport.core.taxonomy import Stage
from trueport.core.versions import package_versions


class Candidate:
    """Hands over one checkpoint: the file.

    Args:
        path: the ONNX file; external data must lie in its folder.
        name_map: input of the source -> input of the candidate.
    """

    name = "candidate"
    frameworks = frozenset({"torch", "onnx", "tensorflow"})
    plan: tuple[tuple[Stage, str], ...] = ((Stage.EXPORT, "the given file"),)

    def __init__(self, path: Path, name_map: Mapping[str, str]) -> None:
        if not path.is_file():
            raise UsageError(
                f"candidate '{path}': expected an ONNX file, found none; give the path of an existing file"
            )
        self._path = path
        self._name_map = {candidate: source for source, candidate in name_map.items()}

    def convert(self, subject: Subject, options: ConverterOptions) -> Iterator[Checkpoint]:
        """Yields the file.

        Raises:
            UsageError: it cannot be read, or the map names an input that is not there.
        """
        del subject
        try:
            model = onnx.load(str(self._path))
        except Exception as error:
            raise UsageError(f"candidate '{self._path}' cannot be read as ONNX: {error}") from error
        program = OnnxProgram(model, options.input_names, self._name_map)
        known = {value.name for value in program.interface.inputs}
        for candidate, source in self._name_map.items():
            if candidate not in known or source not in options.input_names:
                raise UsageError(
                    f"--map {source}={candidate}: the source has inputs {', '.join(options.input_names)}; "
                    f"the candidate has {', '.join(sorted(known))}"
                )
        yield Checkpoint(Stage.EXPORT, self.plan[0][1], program, model=model, path=self._path)

    def switches(self, model: Any, options: ConverterOptions) -> None:
        """Returns nothing: there is no optimizer whose parts could be switched off."""
        del model, options

    def blame(self, error: BaseException) -> tuple[NodeRef, ...]:
        """Returns nothing: reading a file concerns no operator."""
        del error
        return ()

    def versions(self) -> dict[str, str]:
        """Returns the version of onnx, which reads the file."""
        return package_versions("onnx")
