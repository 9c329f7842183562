"""`--dynamic` on a source that declares its own dynamic axes: only those can be asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trueport.core.errors import UsageError
from trueport.core.options import DynamicAxis as RequestedAxis
from trueport.inputs.spec import DynamicAxis


def requested_axis(
    item: RequestedAxis,
    declared: Sequence[DynamicAxis],
    shapes: Mapping[str, Sequence[int]],
    *,
    who: str,
    advice: str = "",
) -> DynamicAxis:
    """Returns the axis that the user asked for.

    Args:
        item: what the user wrote.
        declared: the axes without a fixed size.
        shapes: of the inputs in the first example.
        who: what declares the sizes, for the message.
        advice: what to do about a fixed size, or ''.

    Raises:
        UsageError: there is no such input or axis, or its size is fixed.
    """
    if item.input not in shapes:
        raise UsageError(f"--dynamic: no tensor input is called '{item.input}'; there are: {', '.join(shapes)}")
    shape = shapes[item.input]
    if item.axis >= len(shape):
        raise UsageError(f"--dynamic: input '{item.input}' has no axis {item.axis}; its shape is {list(shape)}")
    if not any(a.input == item.input and a.axis == item.axis for a in declared):
        raise UsageError(
            f"--dynamic: {who} declares the size {shape[item.axis]} for axis {item.axis} of input '{item.input}', "
            f"so it takes no other{advice}"
        )
    return DynamicAxis(item.input, item.axis, item.symbol, item.minimum, item.maximum)
