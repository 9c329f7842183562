"""What was observed of a failure, as far as it tells of its cause."""

from __future__ import annotations

from dataclasses import dataclass

from trueport.core.taxonomy import Kind, Stage, Verdict


@dataclass(frozen=True)
class Located:
    """The place at which a failure is introduced.

    Attributes:
        operators: that introduce it.
        concerned: what they were made from or into.
        differs: what differs there: a value, a shape, a type; None where not known.
        expected: type and shape of the source's value there, as it is held; '' where not known.
        got: the same of the candidate's value.
        alone: the value was judged on the source's own values, so that nothing before it is to blame.
    """

    operators: tuple[str, ...] = ()
    concerned: tuple[str, ...] = ()
    differs: Kind | None = None
    expected: str = ""
    got: str = ""
    alone: bool = False


@dataclass(frozen=True)
class Evidence:
    """What was observed.

    Attributes:
        verdict: of the check.
        stage: to which the failure was attributed.
        kind: what differs, or how it failed.
        exceptions: class names of the exception and of those it came from, outermost first.
        only_away: the example itself is right.
        only_sizes: nothing but other sizes of dynamic axes fails.
        dynamic: axes were asked to be dynamic.
        misused: what the user asked for that cannot be (training mode, a name used twice); '' for nothing.
        no_kernel: the runtime has no kernel for an operator of the file.
        optimized: the runtime fails only with its own optimizations; the first level at which it does, else ''.
        running: it was raised while the file ran, not when it was loaded.
        operators: at which a converter raised.
        opsets: operator sets before and after a step that changed it, else ().
        foreign: operators of the file that no operator set defines.
        located: the place, where it was found.
    """

    verdict: Verdict
    stage: Stage | None
    kind: Kind
    exceptions: tuple[str, ...] = ()
    only_away: bool = False
    only_sizes: bool = False
    dynamic: bool = False
    misused: str = ""
    no_kernel: bool = False
    optimized: str = ""
    running: bool = False
    operators: tuple[str, ...] = ()
    opsets: tuple[int, ...] = ()
    foreign: tuple[str, ...] = ()
    located: Located | None = None
