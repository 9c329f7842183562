"""The identity of a finding across runs, machines and versions: defined once, used wherever findings are compared."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from trueport.core.taxonomy import Kind, Stage, Symptom

VERSION = 1


def signature(
    *,
    stage: Stage | None,
    symptom: Symptom | None,
    kind: Kind,
    converter: str | None,
    exception: str = "",
    operators: Sequence[str] = (),
    dtypes: Sequence[str] = (),
) -> str:
    """Returns the SHA-256 of what identifies a finding: no message text, no numbers, no versions of tools.

    Args:
        stage: where.
        symptom: how it shows.
        kind: what differs.
        converter: by name, None where there is none.
        exception: qualified class name for crashes.
        operators: the operator sequence concerned.
        dtypes: types of the values concerned, in order.

    >>> signature(stage=None, symptom=None, kind=Kind.VALUE, converter=None)[:8]
    'd1c1f1bd'
    """
    fields = [VERSION, stage, symptom, kind, converter, exception, list(operators), list(dtypes)]
    return hashlib.sha256(json.dumps(fields, separators=(",", ":")).encode()).hexdigest()
