"""A right file that a runtime computes wrongly, or refuses: its graph transformers, then its kernels."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx

from trueport.adapters.float64.onnx_program import OnnxProgram
from trueport.adapters.float64.replay.flat import flat
from trueport.adapters.protocols import Executed, Runtime, Switches
from trueport.adapters.runtimes import names, runtime
from trueport.adapters.runtimes.observed import Observation
from trueport.api.locate.changed import evidence_of, nodes_of, operators_of, outputs_of
from trueport.api.locate.parts import recorded, runs_differently, with_sequence
from trueport.bisect.judge import Trial
from trueport.bisect.road import Step
from trueport.core.errors import MissingToolError
from trueport.core.result import NodeRef
from trueport.core.taxonomy import Role, Stage, Status
from trueport.inputs.draw import InputSet
from trueport.locate.kernels import KernelJudgement, NodeJudgement, judge_kernels
from trueport.locate.places import Place, difference
from trueport.locate.sequences import FoundSequence, Outcome, smallest_sequence
from trueport.locate.switches import OnSet, smallest_on
from trueport.onnxgraph.changes import Changes, changes
from trueport.onnxgraph.cut import Cutter
from trueport.oracle.compare import ReferenceOutput, compare_arithmetic

if TYPE_CHECKING:
    from trueport.api.session import Session
    from trueport.api.walk import Walk

MOST_TRIES = 60
"""Parts of the graph that the search for a sequence may try."""
MOST_RUNS = 120
"""Sessions that the search over transformers may make."""


@dataclass
class RuntimeFailure:
    """Locates what a runtime does wrong with a right file.

    Attributes:
        session: of the check.
        walk: with the file.
        steps: of the road: the runtime's levels, the least first, and as users run it last.
        runtime: that ran it.
    """

    session: Session
    walk: Walk
    steps: Sequence[Step]
    runtime: Runtime

    def places(self) -> list[Place]:
        """Returns the transformers that break the file, or the kernels that are wrong with none of them at work."""
        file = self.walk.file
        if file is None or file.path is None or not isinstance(file.executable, OnnxProgram):
            return []
        levels = [s for s in self.steps if s.stage is Stage.RUNTIME]
        fails = self._fails(file.executable, levels[-1])
        if fails is None:
            return []
        found = None if levels[0].bad and len(levels) > 1 else self._transformers(file.path, fails)
        if found is None:
            found = self._kernels(file.path, file.model, file.executable, levels)
        others = self._others(file.executable, file.path, levels[-1]) if found else {}
        return [replace(p, evidence=p.evidence | {"other_engines": others}) if others else p for p in found]

    def _others(self, program: OnnxProgram, path: Path, last: Step) -> dict[str, str]:
        """What the other engines that are installed make of the same file on the same inputs."""
        if self.session.large:
            return {}
        inputs = self._inputs(last)
        expected, told = self._expected(inputs), {}
        for name in names():
            if name == self.runtime.name:
                continue
            with contextlib.suppress(MissingToolError):
                told[name] = self._opinion(runtime(name), program, path, inputs, expected)
        return told

    def _opinion(
        self, other: Runtime, program: OnnxProgram, path: Path, inputs: InputSet, expected: Sequence[ReferenceOutput]
    ) -> str:
        try:
            outputs = flat(other.load(path).run(program.feeds(inputs)))
        except Exception as error:  # noqa: BLE001 - an engine that cannot run the file has no opinion
            return f"does not run it ({type(error).__name__})"
        differs = _differs(expected, outputs, self.walk.file_floors(program, inputs, other))
        return "differs from the source as well" if differs else "agrees with the source"

    # ------------------------------------------------------------------ transformers

    def _fails(self, program: OnnxProgram, last: Step) -> Callable[[Executed], bool] | None:
        """Returns what says whether the same failure shows with a session."""
        if isinstance(last.facts.get("refused"), BaseException):
            return lambda _: False  # the session was made, so the file was not refused
        trial = _telling(last.judgement.failures)
        if trial is None:
            return None
        feeds, expected = program.feeds(trial.inputs), self._expected(trial.inputs)
        floors = self.walk.file_floors(program, trial.inputs, self.runtime)

        def wrong(executed: Executed) -> bool:
            assert executed.run is not None
            return _differs(expected, flat(executed.run(feeds)), floors)

        return wrong

    def _transformers(self, path: Any, fails: Callable[[Executed], bool]) -> list[Place] | None:
        """Returns the place, or None where no transformer is to blame."""
        switches = self.runtime.switches(path)
        if switches is None:
            return None
        crashed = self.steps[-1].judgement.status is Status.CRASHED

        def tried(off: frozenset[str]) -> bool | None:
            try:
                return fails(switches.run(off))
            except Exception:  # noqa: BLE001 - what is looked for, or a combination that cannot run
                return True if crashed else None

        found = smallest_on(switches.names, tried, limit=MOST_RUNS)
        if found.without or found.unusable:
            return None
        if found.never:
            message = f"{self.runtime.name} does not fail when it is loaded once more: nothing can be switched off"
            return [Place(message, (), {"how": "transformers switched off", "runs": found.runs})]
        return [self._with_sequence(*self._blamed(switches, found), found)]

    def _blamed(self, switches: Switches, found: OnSet) -> tuple[Place, Changes | None]:
        """The transformers, with the graph before and after they were at work."""
        nothing = frozenset(switches.names)
        what = _changes(switches, nothing, nothing - set(found.on))
        names = " with ".join(found.on)
        evidence: dict[str, Any] = {"how": "transformers switched off", **found.evidence}
        nodes: tuple[NodeRef, ...] = ()
        made = ""
        if what is not None:
            evidence["changed"] = evidence_of(what)
            evidence["sequence"] = operators_of(what)[:50]
            old = " -> ".join(operators_of(what)[:6]) or "nothing"
            new = ", ".join(n.operator for n in what.added[:4]) or "nothing"
            made = f", which makes {new} of {old}"
            nodes = nodes_of(what)
        together = " (only together)" if len(found.on) > 1 else ""
        cure = f"; switching off {found.cures[0]} alone cures it" if found.cures else ""
        message = f"the graph transformer {names}{together} of {self.runtime.name}{made}{cure}"
        return Place(message, nodes, evidence), what

    def _with_sequence(self, place: Place, what: Changes | None, found: OnSet) -> Place:
        """Adds the smallest sequence that the transformers get wrong together, where there is one."""
        if self.session.large:
            return place
        try:
            sequence = self._sequence(what, found)
        except Exception:  # noqa: BLE001 - what cannot be cut has no sequence
            return place
        told = with_sequence(place, sequence)
        if sequence.outcome is not Outcome.SEQUENCE or place.nodes:
            return told
        pairs = zip(sequence.operators, sequence.outputs, strict=True)
        return replace(told, nodes=tuple(NodeRef(value, op, role=Role.INTRODUCES) for op, value in pairs))

    def _sequence(self, what: Changes | None, found: OnSet) -> FoundSequence:
        file = self.walk.file
        assert file is not None
        assert isinstance(file.executable, OnnxProgram)
        values, types = recorded(file.executable, self._inputs(self.steps[-1]), self.walk.known)
        removed = outputs_of(what) if what is not None else frozenset()
        removed = removed or frozenset(name for node in file.model.graph.node for name in node.output if name)

        def wrong(model: Any, feeds: Mapping[str, Any]) -> bool | None:
            with tempfile.TemporaryDirectory(prefix="trueport-part-") as folder:
                path = Path(folder) / "part.onnx"
                onnx.save(model, str(path))
                return self._part_fails(model, path, feeds, found)

        return smallest_sequence(Cutter(file.model, values, types), removed, wrong, most_tries=MOST_TRIES)

    def _part_fails(self, model: Any, path: Path, feeds: Mapping[str, Any], found: OnSet) -> bool | None:
        switches = self.runtime.switches(path)
        assert switches is not None
        crashed = self.steps[-1].judgement.status is Status.CRASHED
        try:
            executed = switches.run(frozenset(switches.names) - set(found.on))
            assert executed.run is not None
            outputs = executed.run(feeds)
        except Exception:  # noqa: BLE001 - what is looked for, or a part that cannot run
            return True if crashed else None
        return not crashed and runs_differently(model, feeds, outputs, self.runtime.budgets)

    def _inputs(self, last: Step) -> InputSet:
        """The input set that shows the failure; the first one where the file was not even loaded."""
        trial = _telling(last.judgement.failures)
        references = self.session.references
        assert references is not None
        return references.inputs[0] if trial is None else trial.inputs

    def _expected(self, inputs: InputSet) -> Sequence[ReferenceOutput]:
        references = self.session.references
        assert references is not None
        outputs: Sequence[ReferenceOutput] = references.confirmed(references.inputs.index(inputs)).outputs
        return outputs

    # ------------------------------------------------------------------ kernels

    def _kernels(self, path: Any, model: Any, program: OnnxProgram, levels: Sequence[Step]) -> list[Place]:
        trial = _telling(levels[0].judgement.failures) or _telling(levels[-1].judgement.failures)
        if trial is None or model is None:
            return []
        observed = Observation(model, path, program.feeds(trial.inputs), self.runtime, seed=self.session.options.seed)
        judged = judge_kernels(observed.steps())
        return [self._kernel(node, judged, observed) for node in judged.introduced]

    def _kernel(self, node: NodeJudgement, judged: KernelJudgement, observed: Observation) -> Place:
        c = node.comparison
        kernel = f"the kernel {node.operator} of {self.runtime.name} (node '{node.name}')"
        message = f"{kernel}: {difference(c)}, on its own inputs"
        evidence = {
            "how": "judged on the runtime's own values", "local_score": node.score, "expected": c.reference,
            "got": c.candidate, "index": list(c.index), "wrong_elements": c.wrong, "nodes_judged": judged.judged,
            "nodes_not_judged": len(judged.unjudged), "looking_changes_nothing": observed.unchanged,
            "sequence": [node.operator],
        }  # fmt: skip
        passing = [n for n in judged.nodes if n.role is Role.PROPAGATES]
        nodes = [NodeRef(n.name, n.operator, role=n.role, score=n.score) for n in (node, *passing[:19])]
        return Place(message, tuple(nodes), evidence)


def _differs(expected: Sequence[ReferenceOutput], outputs: Sequence[Any], floors: Sequence[Any] | None) -> bool:
    if len(outputs) != len(expected):
        return True
    own = floors if floors is not None and len(floors) == len(expected) else [None] * len(expected)
    return any(
        compare_arithmetic(reference, value, extra_floor=floor).different
        for reference, value, floor in zip(expected, outputs, own, strict=True)
    )


def _telling(failures: Sequence[Trial]) -> Trial | None:
    return min(failures, key=lambda t: (t.error is not None, sum(a.size for a in t.inputs.arrays)), default=None)


def _changes(switches: Switches, before: frozenset[str], after: frozenset[str]) -> Changes | None:
    """What the optimizer changes when parts are switched on; None where its graph cannot be written."""
    try:
        models = switches.run(before).model, switches.run(after).model
    except Exception:  # noqa: BLE001 - the graph is only shown; a runtime that compiles nodes cannot write it
        return None
    return changes(*models) if all(m is not None for m in models) else None
