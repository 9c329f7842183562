"""Wrong conversions of our own: mistakes that converters make, small where they can be small."""

from functools import partial

import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional

from tests.quality.oracle_cases.case import CALIBRATION, OWN, TEST, CaseList, Inputs, Subject
from tests.quality.oracle_cases.fork import Fork

CASES = CaseList(right=False)


@CASES.add(OWN, CALIBRATION, "A reduction over the wrong axis, with outputs of 1e-9")
def tiny_mean_over_the_wrong_axis() -> Subject:
    return Fork(lambda x: 1e-9 * x.mean(-1), lambda x: 1e-9 * x.mean(-2)), (torch.randn(3, 8, 8),)


@CASES.add(OWN, TEST, "The causal mask lets one future token through")
def causal_mask_off_by_one() -> Subject:
    def attend(diagonal: int, scores: torch.Tensor) -> torch.Tensor:
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(diagonal)
        return torch.softmax(scores.masked_fill(~allowed, float("-inf")), -1)

    return Fork(partial(attend, 0), partial(attend, 1)), (torch.randn(2, 12, 12),)


@CASES.add(OWN, CALIBRATION, "The border is repeated instead of mirrored")
def replicate_padding_for_reflect() -> Subject:
    def smooth(mode: str, kernel: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return functional.conv2d(functional.pad(x, (1, 1, 1, 1), mode=mode), kernel)

    module = Fork(partial(smooth, "reflect"), partial(smooth, "replicate"), torch.full((1, 1, 3, 3), 1 / 9))
    return module, (torch.randn(1, 1, 32, 32),)


@CASES.add(OWN, TEST, "A square matrix, transposed")
def square_weights_transposed() -> Subject:
    return Fork(lambda w, x: x @ w, lambda w, x: x @ w.T, torch.randn(32, 32) / 6), (torch.randn(4, 32),)


@CASES.add(OWN, CALIBRATION, "No eps in a root mean square norm: differs by 5e-7")
def rms_norm_without_eps() -> Subject:
    def norm(eps: float, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)

    return Fork(partial(norm, 1e-6), partial(norm, 0.0)), (torch.randn(4, 64),)


@CASES.add(OWN, TEST, "A slope of 0.0101 for 0.01: seen at negative values only")
def leaky_slope_one_percent_off() -> Subject:
    return Fork(lambda x: functional.leaky_relu(x, 0.01), lambda x: functional.leaky_relu(x, 0.0101)), (
        torch.randn(4, 64),
    )


@CASES.add(OWN, CALIBRATION, "Attention scaled by 1/d for 1/sqrt(d)")
def attention_scale_is_not_a_root() -> Subject:
    return Fork(
        functional.scaled_dot_product_attention, partial(functional.scaled_dot_product_attention, scale=1 / 16)
    ), tuple(torch.randn(1, 2, 20, 16) for _ in range(3))


@CASES.add(OWN, TEST, "A bias of 1e-4 is forgotten beside products of about one")
def small_bias_dropped() -> Subject:
    linear = nn.Linear(64, 64)
    nn.init.constant_(linear.bias, 1e-4)
    return Fork(lambda f, x: f(x), lambda f, x: functional.linear(x, f.weight), linear), (torch.randn(4, 64),)


@CASES.add(OWN, CALIBRATION, "Corners aligned or not")
def align_corners_flipped() -> Subject:
    def enlarge(align: bool, x: torch.Tensor) -> torch.Tensor:
        return functional.interpolate(x, size=(16, 16), mode="bilinear", align_corners=align)

    return Fork(partial(enlarge, False), partial(enlarge, True)), (torch.randn(1, 3, 8, 8),)


@CASES.add(OWN, TEST, "Two of four gates in the wrong order")
def lstm_gates_swapped() -> Subject:
    right, swapped = nn.LSTM(8, 16), nn.LSTM(8, 16)
    with torch.no_grad():
        for name, parameter in right.named_parameters():
            gates = parameter.chunk(4)
            getattr(swapped, name).copy_(torch.cat([gates[i] for i in (0, 2, 1, 3)]))
    return Fork(lambda a, b, x: a(x)[0], lambda a, b, x: b(x)[0], right, swapped), (torch.randn(12, 2, 8),)


@CASES.add(OWN, CALIBRATION, "Mean and deviation of an image rounded to two digits")
def normalization_constants_rounded() -> Subject:
    def normalize(digits: int, mean: torch.Tensor, std: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return (x - torch.round(mean, decimals=digits)) / torch.round(std, decimals=digits)

    mean, std = (
        torch.tensor([[[0.48145]], [[0.45782]], [[0.40821]]]),
        torch.tensor([[[0.26862]], [[0.26130]], [[0.27577]]]),
    )
    return Fork(partial(normalize, 5), partial(normalize, 4), mean, std), (torch.rand(1, 3, 16, 16),)


@CASES.add(OWN, TEST, "A cast to integers truncates where floor was meant")
def truncation_for_floor() -> Subject:
    return Fork(lambda x: torch.floor(x * 8).long(), lambda x: (x * 8).long()), (torch.randn(4, 64),)


@CASES.add(OWN, CALIBRATION, "The bounds of a clamp changed places and signs")
def clamp_bounds_swapped() -> Subject:
    return Fork(lambda x: torch.clamp(x, -1, 2), lambda x: torch.clamp(x, -2, 1)), (torch.randn(4, 64),)


@CASES.add(OWN, TEST, "A gather reads the next element")
def gather_off_by_one() -> Subject:
    def pick(offset: int, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return torch.gather(x, 1, (index + offset) % x.shape[1])

    return Fork(partial(pick, 0), partial(pick, 1)), (torch.randn(4, 20), torch.randint(20, (4, 6)))


@CASES.add(OWN, CALIBRATION, "Statistics of the batch, which the running ones nearly equal")
def batch_statistics_for_running_ones() -> Subject:
    x = torch.randn(8, 6, 16, 16)
    norm = nn.BatchNorm2d(6)
    norm.running_mean = x.mean((0, 2, 3)) * 1.001
    norm.running_var = x.var((0, 2, 3)) * 1.001
    return Fork(lambda f, x: f(x), lambda f, x: functional.batch_norm(x, None, None, training=True), norm), (x,)


@CASES.add(OWN, TEST, "A round trip through float16 inside a float32 model")
def round_trip_through_float16() -> Subject:
    def through(narrow: bool, linear: nn.Module, x: torch.Tensor) -> torch.Tensor:
        y = linear(x)
        return torch.tanh(y.half().to(y.dtype) if narrow else y)

    return Fork(partial(through, False), partial(through, True), nn.Linear(64, 64)), (torch.randn(4, 64),)


@CASES.add(OWN, CALIBRATION, "Partial windows give a row and a column more")
def pooling_in_ceil_mode() -> Subject:
    return Fork(lambda x: functional.max_pool2d(x, 2), lambda x: functional.max_pool2d(x, 2, ceil_mode=True)), (
        torch.randn(1, 3, 9, 9),
    )


@CASES.add(OWN, TEST, "Zeros of the border count in the mean")
def pooling_counts_padding() -> Subject:
    def pool(count: bool, x: torch.Tensor) -> torch.Tensor:
        return functional.avg_pool2d(x, 3, stride=1, padding=1, count_include_pad=count)

    return Fork(partial(pool, False), partial(pool, True)), (torch.randn(1, 3, 32, 32),)


@CASES.add(OWN, CALIBRATION, "The running sum leaves out its own element")
def exclusive_cumulative_sum() -> Subject:
    return Fork(lambda x: x.cumsum(-1), lambda x: x.cumsum(-1) - x), (torch.randn(2, 1000),)


@CASES.add(OWN, TEST, "A rational approximation of tanh, good to 1e-3 near zero")
def rational_tanh() -> Subject:
    def rational(x: torch.Tensor) -> torch.Tensor:
        square = x * x
        return x * (27 + square) / (27 + 9 * square)

    return Fork(torch.tanh, rational), (0.3 * torch.randn(4, 64),)


@CASES.add(OWN, CALIBRATION, "A counter beyond 2**24 goes through float32")
def counter_through_float32() -> Subject:
    count = torch.randint(1 << 25, 1 << 26, (4, 16)) | 1
    return Fork(lambda n: n + 2, lambda n: (n.to(torch.float32) + 2).long()), (count,)


@CASES.add(OWN, TEST, "Two outputs of the same shape changed places")
def outputs_swapped() -> Subject:
    def both(linear: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = linear(x)
        return y.sin(), y.cos()

    return Fork(both, lambda f, x: both(f, x)[::-1], nn.Linear(16, 16)), (torch.randn(4, 16),)


@CASES.add(OWN, CALIBRATION, "One of 10,000 rows is 0.1 % too large")
def one_row_of_10000() -> Subject:
    gain = torch.ones(10_000, 1)
    gain[7777] = 1.001
    module = Fork(lambda f, gain, x: f(x), lambda f, gain, x: f(x) * gain, nn.Linear(8, 8), gain)
    return module, (torch.randn(10_000, 8),)


def _negative() -> tuple[Inputs, ...]:
    return ((-torch.rand(4, 64) - 0.1,),)


@CASES.add(OWN, TEST, "Right for the positive example, wrong for negative numbers", elsewhere=_negative)
def absolute_value_forgotten() -> Subject:
    return Fork(lambda x: x.abs().sqrt(), lambda x: x.relu().sqrt()), (torch.rand(4, 64) + 0.1,)


def _batches() -> tuple[Inputs, ...]:
    return (torch.randn(2, 16),), (torch.randn(3, 16),)


@CASES.add(
    OWN,
    CALIBRATION,
    "Right for the example's batch of one: the norm is taken over the batch as well",
    elsewhere=_batches,
    dynamic_shapes=(({0: Dim("batch")},),),
)
def norm_over_the_batch() -> Subject:
    def normalize(axes: tuple[int, ...], x: torch.Tensor) -> torch.Tensor:
        return x / (x * x).sum(axes, keepdim=True).sqrt()

    return Fork(partial(normalize, (1,)), partial(normalize, (0, 1))), (torch.randn(1, 16),)


def _large() -> tuple[Inputs, ...]:
    return ((1000 * torch.randn(4, 64),),)


@CASES.add(OWN, TEST, "Right for the example, wrong beyond 100", elsewhere=_large)
def large_values_clipped() -> Subject:
    return Fork(lambda x: torch.clamp(x, max=1e6), lambda x: torch.clamp(x, max=100.0)), (torch.randn(4, 64),)


def _inexact() -> tuple[Inputs, ...]:
    return ((torch.tensor([-7, 7, -5, 5, -9, 9, -1, 1]),),)


@CASES.add(OWN, CALIBRATION, "Right where 4 divides, wrong for other negative integers", elsewhere=_inexact)
def integer_division_truncates() -> Subject:
    return Fork(
        lambda n: torch.div(n, 4, rounding_mode="floor"),
        lambda n: torch.div(n, 4, rounding_mode="trunc"),
    ), (torch.tensor([-8, 8, -4, 4, -12, 12, 0, 16]),)


@CASES.add(OWN, TEST, "A layer scale of 1e-3 taken for zero: the branch disappears")
def small_branch_dropped() -> Subject:
    return Fork(lambda f, x: x + 1e-3 * f(x), lambda f, x: x, nn.Linear(64, 64)), (torch.randn(4, 64),)


@CASES.add(OWN, CALIBRATION, "Positions start at zero for two")
def position_offset_forgotten() -> Subject:
    def embed(offset: int, tokens: nn.Module, positions: nn.Module, ids: torch.Tensor) -> torch.Tensor:
        return tokens(ids) + positions(torch.arange(ids.shape[1]) + offset)

    module = Fork(partial(embed, 2), partial(embed, 0), nn.Embedding(50, 16), nn.Embedding(40, 16))
    return module, (torch.randint(50, (2, 12)),)


@CASES.add(OWN, TEST, "Halves of a rotation for interleaved pairs")
def rotary_halves_for_pairs() -> Subject:
    def angles(x: torch.Tensor) -> torch.Tensor:
        position = torch.arange(x.shape[-2], dtype=x.dtype)[:, None]
        return position * 10000.0 ** (-torch.arange(0, x.shape[-1], 2, dtype=x.dtype) / x.shape[-1])

    def rotate(first: torch.Tensor, second: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
        cosine, sine = angle.cos(), angle.sin()
        return torch.stack([first * cosine - second * sine, first * sine + second * cosine], -1)

    def pairs(x: torch.Tensor) -> torch.Tensor:
        return rotate(x[..., 0::2], x[..., 1::2], angles(x)).flatten(-2)

    def halves(x: torch.Tensor) -> torch.Tensor:
        return rotate(*x.chunk(2, -1), angles(x)).flatten(-2)

    return Fork(pairs, halves), (torch.randn(1, 2, 20, 16),)


@CASES.add(OWN, CALIBRATION, "x sigmoid(1.702 x) for the Gaussian error")
def quick_gelu_for_gelu() -> Subject:
    return Fork(functional.gelu, lambda x: x * torch.sigmoid(1.702 * x)), (torch.randn(4, 64),)


@CASES.add(OWN, TEST, "eps beside the root instead of under it")
def eps_outside_the_root() -> Subject:
    def center(x: torch.Tensor) -> torch.Tensor:
        return x - x.mean(-1, keepdim=True)

    def inside(x: torch.Tensor) -> torch.Tensor:
        return center(x) / torch.sqrt(x.var(-1, keepdim=True, correction=0) + 1e-6)

    def outside(x: torch.Tensor) -> torch.Tensor:
        return center(x) / (torch.sqrt(x.var(-1, keepdim=True, correction=0)) + 1e-6)

    return Fork(inside, outside), (torch.randn(4, 256),)


@CASES.add(OWN, CALIBRATION, "A strict comparison: differs at equality, which integers reach")
def comparison_made_strict() -> Subject:
    return Fork(lambda a, b: a >= b, lambda a, b: a > b), (torch.randint(8, (4, 64)), torch.randint(8, (4, 64)))


@CASES.add(OWN, TEST, "Pi with four decimals")
def pi_rounded() -> Subject:
    return Fork(lambda x: torch.sin(x * 3.141592653589793), lambda x: torch.sin(x * 3.1416)), (torch.randn(4, 64),)


@CASES.add(OWN, CALIBRATION, "A product of 64-bit integers in 32 bits")
def product_in_32_bits() -> Subject:
    a, b = torch.randint(1 << 17, 1 << 20, (2, 4, 16))
    return Fork(lambda a, b: a * b, lambda a, b: (a.int() * b.int()).long()), (a, b)


@CASES.add(OWN, TEST, "The same numbers in another type")
def output_type_narrowed() -> Subject:
    return Fork(lambda x: x.argmax(-1), lambda x: x.argmax(-1).int()), (torch.randn(8, 20),)


@CASES.add(OWN, CALIBRATION, "The same numbers in a shape that broadcasts")
def output_shape_that_broadcasts() -> Subject:
    return Fork(lambda x: x.sum(0), lambda x: x.sum(0).expand(4, 3) + 0), (torch.randn(4, 3),)


@CASES.add(OWN, TEST, "NaN on one side only, at one element")
def one_sided_nan() -> Subject:
    def guarded(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x > 0, torch.log(x.clamp(min=1e-20)), 0.0)

    def unguarded(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x >= -1e-3, torch.log(x), 0.0)

    x = torch.rand(4, 16) + 0.1
    x[2, 3] = -5e-4
    return Fork(guarded, unguarded), (x,)


@CASES.add(OWN, CALIBRATION, "Groups of channels for interleaved channels")
def channel_shuffle_forgotten() -> Subject:
    def shuffle(x: torch.Tensor) -> torch.Tensor:
        n, c, h, w = x.shape
        return x.view(n, 4, c // 4, h, w).transpose(1, 2).reshape(n, c, h, w)

    conv = nn.Conv2d(16, 16, 3, groups=4)
    return Fork(lambda f, x: shuffle(f(x)), lambda f, x: f(x), conv), (torch.randn(1, 16, 8, 8),)


@CASES.add(OWN, TEST, "The decay of a float16 model computed in bfloat16 precision")
def float16_model_loses_bits() -> Subject:
    def coarse(linear: nn.Module, x: torch.Tensor) -> torch.Tensor:
        y = linear(x)
        return y.to(torch.bfloat16).to(y.dtype)

    return Fork(lambda f, x: f(x), coarse, nn.Linear(64, 64).half()), (torch.randn(8, 64).half(),)


@CASES.add(OWN, CALIBRATION, "The first term of a series for expm1 of 1e-3")
def series_cut_after_one_term() -> Subject:
    return Fork(lambda x: torch.expm1(x), lambda x: x), (1e-3 * torch.randn(4, 64),)


@CASES.add(OWN, TEST, "One of twelve heads uses its neighbour's values, behind a projection")
def one_head_mixed_up() -> Subject:
    order = torch.tensor([0, 1, 2, 4, 4, 5, 6, 7, 8, 9, 10, 11])

    def attend(
        mixed: bool, order: torch.Tensor, out: nn.Module, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
    ) -> torch.Tensor:
        y = functional.scaled_dot_product_attention(q, k, v[:, order] if mixed else v)
        return out(y.transpose(1, 2).flatten(2))

    module = Fork(partial(attend, False), partial(attend, True), order, nn.Linear(96, 32))
    return module, tuple(torch.randn(1, 12, 10, 8) for _ in range(3))


@CASES.add(OWN, CALIBRATION, "An eps of 1e-9 taken for zero, as onnxscript 0.7.2 does for every constant up to 1e-8")
def tiny_eps_dropped() -> Subject:
    module = Fork(lambda x: x / (x.abs() + 1e-9), lambda x: x / x.abs())
    return module, (torch.randn(4, 64) * 10.0 ** -torch.arange(1.0, 9.0, 2.0)[:, None],)
