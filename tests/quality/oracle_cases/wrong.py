"""Wrong conversions: the wrong columns of the three tables of the design."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional

from tests.quality.oracle_cases.case import CALIBRATION, FIRST, MEANING, REPAIRED, TEST, CaseList, Subject
from tests.quality.oracle_cases.fork import Fork

CASES = CaseList(right=False)


@CASES.add(FIRST, CALIBRATION, "Differs by up to 5e-4")
def gelu_tanh_for_erf() -> Subject:
    return Fork(functional.gelu, lambda x: functional.gelu(x, approximate="tanh")), (torch.randn(4, 64),)


@CASES.add(FIRST, TEST, "Differs by 5e-6")
def layer_norm_eps_1e6_for_1e5() -> Subject:
    return Fork(lambda x: functional.layer_norm(x, (64,)), lambda x: functional.layer_norm(x, (64,), eps=1e-6)), (
        torch.randn(4, 64),
    )


@CASES.add(FIRST, CALIBRATION, "Differs by one part in 8,192")
def standard_deviation_biased_for_unbiased() -> Subject:
    return Fork(lambda x: x.std(-1), lambda x: x.std(-1, correction=0)), (torch.randn(4, 4096),)


@CASES.add(FIRST, TEST, "Completely wrong, but the outputs are about 1e-7")
def softmax_axis_of_tiny_output() -> Subject:
    return Fork(lambda x: 1e-6 * torch.softmax(x, -1), lambda x: 1e-6 * torch.softmax(x, 0)), (torch.randn(8, 8),)


@CASES.add(FIRST, CALIBRATION, "1/6 rounded to four digits")
def hardswish_with_rounded_sixth() -> Subject:
    return Fork(functional.hardswish, lambda x: x * torch.clamp(x * 0.1667 + 0.5, 0, 1)), (torch.randn(4, 64),)


@CASES.add(FIRST, TEST, "SELU's two constants rounded to five digits")
def selu_with_rounded_constants() -> Subject:
    def rounded(x: torch.Tensor) -> torch.Tensor:
        return 1.0507 * torch.where(x > 0, x, 1.67326 * (torch.exp(x) - 1))

    return Fork(functional.selu, rounded), (torch.randn(4, 64),)


@CASES.add(FIRST, CALIBRATION, "Differs at ties only, and the example has them")
def round_half_away_for_half_even() -> Subject:
    def half_away(x: torch.Tensor) -> torch.Tensor:
        return torch.sign(x) * torch.floor(torch.abs(x) + 0.5)

    return Fork(lambda x: torch.round(4 * x) / 4, lambda x: half_away(4 * x) / 4), (
        torch.randint(-40, 40, (4, 64)) / 8,
    )


@CASES.add(FIRST, TEST, "The sign of the divisor for the sign of the dividend")
def remainder_for_fmod() -> Subject:
    return Fork(lambda x: torch.fmod(x, 3.0), lambda x: torch.remainder(x, 3.0)), (5 * torch.randn(4, 64),)


@CASES.add(REPAIRED, CALIBRATION, "A column of -3e38 makes a whole-tensor norm blind")
def softmax_axis_beside_lowest_column() -> Subject:
    def beside(axis: int, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([1e-6 * torch.softmax(x, axis), torch.full_like(x[:, :1], -3e38)], -1)

    return Fork(lambda x: beside(-1, x), lambda x: beside(0, x)), (torch.randn(8, 8),)


@CASES.add(REPAIRED, TEST, "Scores are 1 % wrong beside box coordinates of hundreds")
def scores_beside_box_coordinates() -> Subject:
    def detect(gain: float, linear: nn.Module, x: torch.Tensor) -> torch.Tensor:
        y = linear(x)
        return torch.cat([640 * torch.sigmoid(y[..., :4]), gain * torch.sigmoid(y[..., 4:])], -1)

    head = nn.Linear(32, 5)
    return Fork(partial(detect, 1.0), partial(detect, 1.01), head), (torch.randn(1, 100, 32),)


@CASES.add(REPAIRED, CALIBRATION, "Inside the float32 noise, 1e-6 in float64")
def layer_norm_eps_after_cumulative_sum() -> Subject:
    def norm(x: torch.Tensor, eps: float) -> torch.Tensor:
        return functional.layer_norm(x.cumsum(-1), (64,), eps=eps)

    return Fork(lambda x: norm(x, 1e-5), lambda x: norm(x, 1e-6)), (torch.randn(4, 64),)


@CASES.add(REPAIRED, TEST, "A factor of 1.000001 taken for one")
def factor_near_one_dropped() -> Subject:
    module = Fork(lambda linear, x: linear(x) * 1.000001, lambda linear, x: linear(x), nn.Linear(64, 64))
    return module, (torch.randn(4, 64),)


@CASES.add(MEANING, CALIBRATION, "An epsilon a hundred times too large")
def layer_norm_eps_1e3_for_1e5() -> Subject:
    return Fork(lambda x: functional.layer_norm(x, (64,)), lambda x: functional.layer_norm(x, (64,), eps=1e-3)), (
        torch.randn(4, 64),
    )


@CASES.add(MEANING, TEST, "Scaled, so that the error is as small as in the middle of a network")
def softmax_over_the_wrong_axis() -> Subject:
    return Fork(lambda x: torch.softmax(x, -1), lambda x: torch.softmax(x, -2)), (torch.randn(2, 6, 6),)


@CASES.add(MEANING, CALIBRATION, "Zeros for a mirror at the border")
def reflect_padding_for_zeros() -> Subject:
    def padded(mode: str, conv: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return conv(functional.pad(x, (1, 1, 1, 1), mode=mode))

    conv = nn.Conv2d(3, 8, 3)
    return Fork(partial(padded, "constant"), partial(padded, "reflect"), conv), (torch.randn(1, 3, 12, 12),)


@CASES.add(MEANING, TEST, "Floor for rounding, in steps of 1/8")
def floor_for_round() -> Subject:
    return Fork(lambda x: torch.round(8 * x) / 8, lambda x: torch.floor(8 * x) / 8), (torch.randn(4, 64),)
