"""Faults planted in converters and runtimes, by name: what stage attribution is measured against."""

from contextlib import AbstractContextManager

from tests.quality.seeded_faults import (
    dynamo_conversion,
    dynamo_load,
    dynamo_optimization,
    file_writing,
    runtime,
    script_conversion,
    script_load,
    script_optimization,
    validation,
)
from tests.quality.seeded_faults.fault import SeededFault

_MODULES = (
    dynamo_load,
    dynamo_conversion,
    dynamo_optimization,
    script_load,
    script_conversion,
    script_optimization,
    file_writing,
    validation,
    runtime,
)

FAULTS: dict[str, SeededFault] = {fault.name: fault for module in _MODULES for fault in module.FAULTS}


def plant(name: str) -> AbstractContextManager[None]:
    """A context in which the fault of this name is active."""
    return FAULTS[name].plant()


__all__ = ["FAULTS", "SeededFault", "plant"]
