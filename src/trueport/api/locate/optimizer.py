"""A right model that a converter's optimizer breaks: the passes and rules that it needs, and the sequence they meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import onnx

from trueport.adapters.float64.onnx_program import OnnxProgram
from trueport.adapters.protocols import Switches
from trueport.api.locate.changed import outputs_of
from trueport.api.locate.meaning import Meaning
from trueport.api.locate.parts import differs, recorded, with_sequence
from trueport.locate.places import Place
from trueport.locate.sequences import FoundSequence, smallest_sequence
from trueport.locate.switches import OnSet, smallest_on
from trueport.onnxgraph.changes import changes
from trueport.onnxgraph.cut import Cutter
from trueport.oracle.thresholds import THRESHOLDS

if TYPE_CHECKING:
    from trueport.api.walk import Walk

MOST_RUNS = 60
"""Runs of the optimizer that the search over its parts may make."""
MOST_RUNS_OF_LARGE = 20
MOST_TRIES = 60
"""Parts of the graph that the search for a sequence may try."""


@dataclass
class OptimizerFailure:
    """Locates which parts of a converter's optimizer break a model.

    Attributes:
        meaning: with the walk and the failing input set.
        unoptimized: the model before the optimizer.
    """

    meaning: Meaning
    unoptimized: onnx.ModelProto

    @property
    def _walk(self) -> Walk:
        return self.meaning.walk

    def described(self, places: list[Place]) -> list[Place]:
        """Returns the places, the first one with the parts and the sequence that are to blame."""
        assert self._walk.converter is not None
        converter, settings = self._walk.converter
        switches = converter.switches(self.unoptimized, settings)
        if switches is None or not switches.names:
            return places
        large = self.meaning.session.large
        found = smallest_on(switches.names, lambda off: self._fails(switches, off), limit=_limit(large=large))
        if found.unusable or found.never:
            return places
        told, evidence = self._told(found)
        first = places[0] if places else Place("")
        message = f"{first.message}; {told}" if first.message else told
        place = Place(message, first.nodes, first.evidence | evidence)
        sequence = self._sequence(switches, found) if found.on and not large else None
        return [place if sequence is None else with_sequence(place, sequence), *places[1:]]

    def _fails(self, switches: Switches, off: frozenset[str]) -> bool | None:
        try:
            program = self._program(switches.run(off).model)
            return self.meaning.score_of(program) > THRESHOLDS.meaning
        except Exception:  # noqa: BLE001 - a combination of parts that makes no model says nothing
            return None

    def _program(self, model: onnx.ModelProto) -> OnnxProgram:
        return OnnxProgram(model, self.meaning.session.names)

    @staticmethod
    def _told(found: OnSet) -> tuple[str, dict[str, Any]]:
        if found.without:
            told = "it is there with every pass switched off, so it is no pass's fault"
            return told, {"parts": [], "runs": found.runs}
        names = "' and '".join(found.on[:4]) + (f"' and {len(found.on) - 4} more" if len(found.on) > 4 else "'")
        together = " (only together)" if len(found.on) > 1 else ""
        return f"it needs '{names}{together}", found.evidence

    def _sequence(self, switches: Switches, found: OnSet) -> FoundSequence | None:
        """The smallest part of what was changed that the whole optimizer gets wrong as well."""
        assert self._walk.converter is not None
        converter, settings = self._walk.converter
        try:
            made = switches.run(frozenset(switches.names) - set(found.on)).model
            removed = outputs_of(changes(self.unoptimized, made))
            values, types = recorded(self._program(self.unoptimized), self.meaning.trial.inputs, self._walk.known)
        except Exception:  # noqa: BLE001 - what cannot be cut has no sequence
            return None

        def wrong(model: Any, feeds: Mapping[str, Any]) -> bool | None:
            parts = converter.switches(model, settings)
            if parts is None:
                return None
            try:
                return differs(model, parts.run(frozenset(parts.names) - set(found.on)).model, feeds, self._walk.known)
            except Exception:  # noqa: BLE001 - a part that the optimizer does not take tells nothing
                return None

        return smallest_sequence(Cutter(self.unoptimized, values, types), removed, wrong, most_tries=MOST_TRIES)


def _limit(*, large: bool) -> int:
    return MOST_RUNS_OF_LARGE if large else MOST_RUNS
