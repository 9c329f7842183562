"""Did you mean this fault: public faults that look exactly like what was found.

The index holds facts only, and only of faults that were seen here with the versions named. A fault is named where
stage, converter or runtime, kind, and the operators that introduce the failure all agree with its signature; a failure
that was not located matches nothing that names operators.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

import msgspec

from trueport.core.taxonomy import Kind, Stage


@dataclass(frozen=True)
class Sighting:
    """A failure as the index sees it.

    Attributes:
        stage: to which it was attributed.
        kind: of the finding.
        converter: by name, or None.
        runtime: by name.
        operators: that introduce it, and those that they were made into.
        exceptions: class names.
        parts: passes or transformers that were found to be at fault.
        dtypes: of the wrong values, or of the inputs.
        versions: package -> version.
    """

    stage: Stage | None
    kind: Kind
    converter: str | None = None
    runtime: str = ""
    operators: tuple[str, ...] = ()
    exceptions: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class KnownFault:
    """One public fault.

    Attributes:
        tracker: `owner/repository#number`.
        title: what is wrong, in one line.
        package: whose fault it is.
        seen: versions of the package with which it was seen here.
        workaround: what avoids it; '' where nothing is known to.
        stages: signature; any of these.
        kinds: signature; any of these.
        converters: signature; any of these, or any at all where empty.
        runtimes: the same of the runtime.
        operators: signature; all of these.
        exceptions: signature; all of these.
        parts: signature; all of these passes or transformers were found to be at fault.
        dtypes: signature; the wrong values have one of these types; any where empty.
    """

    tracker: str
    title: str
    package: str
    seen: tuple[str, ...]
    stages: tuple[Stage, ...]
    kinds: tuple[Kind, ...]
    workaround: str = ""
    converters: tuple[str, ...] = ()
    runtimes: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    exceptions: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()

    def fits(self, seen: Sighting) -> bool:
        """Whether a failure has this fault's signature."""
        return (
            seen.stage in self.stages
            and seen.kind in self.kinds
            and (not self.converters or seen.converter in self.converters)
            and (not self.runtimes or seen.runtime in self.runtimes)
            and set(self.operators) <= set(seen.operators)
            and set(self.exceptions) <= set(seen.exceptions)
            and set(self.parts) <= set(seen.parts)
            and (not self.dtypes or bool(set(self.dtypes) & set(seen.dtypes)))
        )

    def told(self, versions: Mapping[str, str]) -> str:
        """Returns the fault in one line, and whether it was seen with the version that is installed."""
        installed = versions.get(self.package, "")
        with_ = f"seen here with {self.package} {', '.join(self.seen)}"
        other = f" (installed: {installed})" if installed and installed.split("+")[0] not in self.seen else ""
        return f"{self.tracker}: {self.title}; {with_}{other}" + (f"; {self.workaround}" if self.workaround else "")


def known_fault(seen: Sighting) -> KnownFault | None:
    """Returns the public fault that has the signature of a failure; None where there is none or more than one."""
    found = [fault for fault in index() if fault.fits(seen)]
    return found[0] if len(found) == 1 else None


@cache
def index() -> tuple[KnownFault, ...]:
    """Returns all known faults, as the package ships them."""
    text = resources.files(__package__).joinpath("known_faults.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text)["fault"], tuple[KnownFault, ...])
