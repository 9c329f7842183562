"""Where the windows of convolutions and poolings lie: kernel, strides, dilations, padding and output size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.registry import Call


@dataclass(frozen=True, slots=True)
class Windows:
    """Sliding windows over spatial dimensions; all tuples have one entry for each.

    Attributes:
        before: padding in front.
        after: padding behind, as declared.
        output: number of windows.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    output: tuple[int, ...]

    def reach(self, spatial: Sequence[int]) -> list[tuple[int, int]]:
        """Returns the padding that holds every window; with ceil_mode it may exceed the declared one."""
        widths = []
        for i, size in enumerate(spatial):
            last = (self.output[i] - 1) * self.strides[i] + (self.kernel[i] - 1) * self.dilations[i] + 1
            widths.append((self.before[i], max(self.after[i], last - size - self.before[i])))
        return widths

    def offsets(self) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Yields each position in the kernel with the slices of the padded input that stand there in all windows."""
        for offset in product(*(range(k) for k in self.kernel)):
            yield (
                offset,
                tuple(
                    slice(o * d, o * d + (n - 1) * s + 1, s)
                    for o, d, n, s in zip(offset, self.dilations, self.output, self.strides, strict=True)
                ),
            )


def _output_size(padded: int, extent: int, stride: int, before: int, size: int, *, ceil: bool) -> int:
    if not ceil:
        return (padded - extent) // stride + 1
    count = -(-(padded - extent) // stride) + 1
    # A window that would start behind the input, in the padding at its end, is dropped.
    return count - 1 if (count - 1) * stride >= size + before else count


def windows_of(call: Call, spatial: Sequence[int], kernel_shape: Sequence[int], *, ceil: bool = False) -> Windows:
    """Returns the windows that the attributes of a convolution or pooling describe over an input."""
    rank = len(spatial)
    strides = tuple(call.attributes.get("strides") or [1] * rank)
    dilations = tuple(call.attributes.get("dilations") or [1] * rank)
    extents = [(k - 1) * d + 1 for k, d in zip(kernel_shape, dilations, strict=True)]
    auto = call.attributes.get("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        output = tuple(-(-n // s) for n, s in zip(spatial, strides, strict=True))
        totals = [max((o - 1) * s + e - n, 0) for o, s, e, n in zip(output, strides, extents, spatial, strict=True)]
        small, large = tuple(t // 2 for t in totals), tuple(t - t // 2 for t in totals)
        before, after = (small, large) if auto == "SAME_UPPER" else (large, small)
        return Windows(tuple(kernel_shape), strides, dilations, before, after, output)
    pads = call.attributes.get("pads") if auto == "NOTSET" else None
    pads = pads or [0] * (2 * rank)
    before, after = tuple(pads[:rank]), tuple(pads[rank:])
    output = tuple(
        _output_size(n + before[i] + after[i], extents[i], strides[i], before[i], n, ceil=ceil)
        for i, n in enumerate(spatial)
    )
    return Windows(tuple(kernel_shape), strides, dilations, before, after, output)


def channels_first(vector: Array, rank: int) -> Array:
    """Returns a vector of channels shaped to broadcast against an array of `rank` dimensions, channels second."""
    return vector.reshape(1, -1, *[1] * (rank - 2))
