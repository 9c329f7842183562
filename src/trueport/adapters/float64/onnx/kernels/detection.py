"""Operators of object detectors: suppression of overlapping boxes, pooling of regions, deformable convolution."""

from __future__ import annotations

import numpy as np

from trueport.adapters.float64.onnx.dtypes import Array
from trueport.adapters.float64.onnx.kernels.windows import channels_first, windows_of
from trueport.adapters.float64.onnx.registry import Call, kernel


def _corners(boxes: Array, *, centered: bool) -> Array:
    if centered:
        x, y, w, h = np.moveaxis(boxes, -1, 0)
        return np.stack([y - h / 2, x - w / 2, y + h / 2, x + w / 2], axis=-1)
    a, b = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(a, b), np.maximum(a, b)], axis=-1)


def _overlaps(box: Array, others: Array) -> Array:
    extent = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    shared = np.prod(np.maximum(extent, 0.0), axis=1)
    areas = np.prod(others[:, 2:] - others[:, :2], axis=1)
    union = np.prod(box[2:] - box[:2]) + areas - shared
    return np.where(shared > 0, shared / union, 0.0)


@kernel("NonMaxSuppression", selects=True)
def non_max_suppression(
    call: Call, boxes: Array, scores: Array, limit: Array | None = None, overlap: Array | None = None,
    threshold: Array | None = None,
) -> Array:  # fmt: skip
    """Returns (batch, class, box) of the boxes that no better box of their class overlaps too much."""
    most = 0 if limit is None else int(limit.reshape(-1)[0])
    most_overlap = 0.0 if overlap is None else float(overlap.reshape(-1)[0])
    corners = _corners(boxes, centered=bool(call.attributes["center_point_box"]))
    chosen: list[tuple[int, int, int]] = []
    for batch, classes in enumerate(scores):
        for index, values in enumerate(classes):
            candidates = np.argsort(-values, kind="stable")
            if threshold is not None and threshold.size:
                candidates = candidates[values[candidates] > threshold.reshape(-1)[0]]
            kept = 0
            while candidates.size and kept < most:
                best = int(candidates[0])
                chosen.append((batch, index, best))
                kept += 1
                rest = candidates[1:]
                candidates = rest[_overlaps(corners[batch, best], corners[batch, rest]) <= most_overlap]
    return np.asarray(chosen, dtype=np.int64).reshape(-1, 3)


def _bilinear(image: Array, y: Array, x: Array, *, edge: bool) -> list[Array]:
    """Returns the four weighted neighbours of each position in [channels, height, width].

    Outside, the image counts as zero; with `edge`, up to one element beyond it as its border.
    """
    height, width = image.shape[1:]
    inside = (y >= -1.0) & (y <= height) & (x >= -1.0) & (x <= width)
    if edge:
        y, x = np.clip(y, 0.0, height - 1.0), np.clip(x, 0.0, width - 1.0)
    y0, x0 = np.floor(y), np.floor(x)
    parts = []
    for i, wy in ((y0, 1.0 - (y - y0)), (y0 + 1, y - y0)):
        for j, wx in ((x0, 1.0 - (x - x0)), (x0 + 1, x - x0)):
            known = inside & (i >= 0) & (i < height) & (j >= 0) & (j < width)
            rows = np.clip(i, 0, height - 1).astype(np.int64)
            columns = np.clip(j, 0, width - 1).astype(np.int64)
            parts.append(np.where(known, image[:, rows, columns] * (wy * wx), 0.0))
    return parts


@kernel("RoiAlign")
def roi_align(call: Call, x: Array, rois: Array, batch_indices: Array) -> Array:
    """Returns each region of interest pooled to a fixed size from bilinear samples."""
    attributes = call.attributes
    height, width = attributes["output_height"], attributes["output_width"]
    half = 0.5 if attributes.get("coordinate_transformation_mode", "output_half_pixel") == "half_pixel" else 0.0
    result = np.zeros((rois.shape[0], x.shape[1], height, width))
    for index, (roi, batch) in enumerate(zip(rois, batch_indices.tolist(), strict=True)):
        x1, y1, x2, y2 = (float(value) * attributes["spatial_scale"] - half for value in roi)
        region_h, region_w = y2 - y1, x2 - x1
        if not half:
            region_h, region_w = max(region_h, 1.0), max(region_w, 1.0)
        ratio = attributes["sampling_ratio"]
        rows = ratio if ratio > 0 else int(np.ceil(region_h / height))
        columns = ratio if ratio > 0 else int(np.ceil(region_w / width))
        ys = y1 + (np.arange(height * rows) + 0.5) * (region_h / (height * rows)) if rows else np.zeros(0)
        xs = x1 + (np.arange(width * columns) + 0.5) * (region_w / (width * columns)) if columns else np.zeros(0)
        if not rows or not columns:
            continue
        grid_y, grid_x = np.meshgrid(ys, xs, indexing="ij")
        parts = _bilinear(x[batch], grid_y, grid_x, edge=True)
        # As in ONNX Runtime, the largest is taken over the weighted neighbours, not over interpolated samples.
        if attributes["mode"] == "max":
            merged = np.maximum.reduce(parts).reshape(-1, height, rows, width, columns)
            result[index] = merged.max(axis=(2, 4))
        else:
            merged = np.asarray(sum(parts)).reshape(-1, height, rows, width, columns)
            result[index] = merged.mean(axis=(2, 4))
    return result


@kernel("DeformConv")
def deform_conv(
    call: Call, x: Array, w: Array, offset: Array, b: Array | None = None, mask: Array | None = None
) -> Array:
    """Returns the convolution of x with w, each kernel position moved by its own offset at each output (2-D)."""
    windows = windows_of(call, x.shape[2:], w.shape[2:])
    groups, parts = call.attributes.get("group", 1), call.attributes.get("offset_group", 1)
    batch, channels = x.shape[:2]
    out_h, out_w = windows.output
    taps = list(np.ndindex(*windows.kernel))
    moves = offset.reshape(batch, parts, len(taps), 2, out_h, out_w)
    factors = None if mask is None else mask.reshape(batch, parts, len(taps), out_h, out_w)
    columns = np.zeros((batch, channels, len(taps), out_h, out_w))
    per_part = channels // parts
    for n in range(batch):
        for part in range(parts):
            image = x[n, part * per_part : (part + 1) * per_part]
            for t, tap in enumerate(taps):
                ys, xs = (
                    np.arange(windows.output[i]) * windows.strides[i]
                    - windows.before[i]
                    + tap[i] * windows.dilations[i]
                    for i in range(2)
                )
                values = np.asarray(
                    sum(_bilinear(image, ys[:, None] + moves[n, part, t, 0], xs + moves[n, part, t, 1], edge=False))
                )
                columns[n, part * per_part : (part + 1) * per_part, t] = (
                    values if factors is None else values * factors[n, part, t]
                )
    grouped = columns.reshape(batch, groups, channels // groups * len(taps), out_h * out_w)
    weights = w.reshape(groups, w.shape[0] // groups, -1)
    result: Array = np.matmul(weights, grouped).reshape(batch, w.shape[0], out_h, out_w)
    return result if b is None else result + channels_first(b, 4)


@kernel("MaxRoiPool", selects=True)
def max_roi_pool(call: Call, x: Array, rois: Array) -> Array:
    """Returns the largest element of each cell of a grid over each region, 0 where a cell is empty.

    As Fast R-CNN defines it (Girshick, 2015): corners are rounded to whole elements, away from zero in the middle, and
    belong to the region; cells overlap.
    """
    height, width = call.attributes["pooled_shape"]
    scale = call.attributes.get("spatial_scale", 1.0)
    result = np.zeros((len(rois), x.shape[1], height, width))
    for number, roi in enumerate(rois):
        image = x[int(roi[0])]
        left, top, right, bottom = (int(np.floor(abs(c * scale) + 0.5) * np.sign(c)) for c in roi[1:])
        rows = _cells(top, bottom, height, x.shape[2])
        columns = _cells(left, right, width, x.shape[3])
        for i, (y0, y1) in enumerate(rows):
            for j, (x0, x1) in enumerate(columns):
                if y1 > y0 and x1 > x0:
                    result[number, :, i, j] = image[:, y0:y1, x0:x1].max(axis=(1, 2))
    return result


def _cells(first: int, last: int, count: int, size: int) -> list[tuple[int, int]]:
    """Returns where each cell of a region begins and ends, within the image."""
    step = max(last - first + 1, 1) / count
    ends = [(int(np.floor(i * step)) + first, int(np.ceil((i + 1) * step)) + first) for i in range(count)]
    return [(min(max(a, 0), size), min(max(b, 0), size)) for a, b in ends]
