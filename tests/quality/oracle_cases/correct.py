"""Right conversions: the correct columns of the three tables of the design, mostly ill-conditioned."""

import torch
from torch import nn
from torch.nn import functional

from tests.quality.oracle_cases.case import CALIBRATION, FIRST, MEANING, REPAIRED, TEST, CaseList, Subject
from tests.quality.oracle_cases.fork import Fork, Function
from tests.quality.oracle_cases.winograd import winograd_convolution

CASES = CaseList(right=True)


@CASES.add(FIRST, CALIBRATION, "Two linear layers")
def mlp() -> Subject:
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)), (torch.randn(4, 64),)


@CASES.add(FIRST, TEST, "Amplifies the rounding of its argument thirty-fold")
def exp_of_30x() -> Subject:
    return Function(lambda x: torch.exp(30 * x)), (torch.randn(4, 64),)


@CASES.add(FIRST, CALIBRATION, "The rounding of the argument is a hundredth of a period")
def sine_of_100000x() -> Subject:
    return Function(lambda x: torch.sin(1e5 * x)), (torch.randn(4, 64),)


@CASES.add(FIRST, TEST, "A determinant of a product")
def determinant_of_gram() -> Subject:
    return Function(lambda x: torch.det(x @ x.transpose(-1, -2))), (torch.randn(3, 6, 8),)


@CASES.add(FIRST, CALIBRATION, "An ordinary encoder layer")
def transformer_layer() -> Subject:
    return nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), (torch.randn(2, 10, 32),)


@CASES.add(FIRST, TEST, "Deviations of 0.01 around 1000: eleven of 24 bits are left")
def standardize_at_1000() -> Subject:
    def standardize(x: torch.Tensor) -> torch.Tensor:
        return (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)

    return Function(standardize), (1000 + 0.01 * torch.randn(4, 256),)


@CASES.add(FIRST, TEST, "Products of 4,096 terms with cancellation")
def gram_of_4096_columns() -> Subject:
    return Function(lambda x: x @ x.transpose(-1, -2)), (torch.randn(16, 4096),)


@CASES.add(FIRST, CALIBRATION, "Nearly a step function")
def softmax_of_1000x() -> Subject:
    return Function(lambda x: torch.softmax(1000 * x, -1)), (torch.randn(4, 64),)


@CASES.add(REPAIRED, CALIBRATION, "Rounding errors that add up along 1e5 terms")
def cumulative_sum_of_100000() -> Subject:
    return Function(lambda x: x.cumsum(-1)), (torch.randn(1, 100_000),)


@CASES.add(REPAIRED, TEST, "Orders of summation differ over a million terms")
def mean_of_a_million() -> Subject:
    return Function(lambda x: x.mean(-1)), (torch.randn(1, 1_000_000),)


@CASES.add(REPAIRED, CALIBRATION, "The same after an activation")
def mean_of_gelu_of_a_million() -> Subject:
    return Function(lambda x: functional.gelu(x).mean(-1)), (torch.randn(1, 1_000_000),)


@CASES.add(REPAIRED, TEST, "Variance 1 around 1e4: a one-pass formula would be off by 6")
def variance_at_10000() -> Subject:
    return Function(lambda x: x.var(-1)), (10_000 + torch.randn(4, 1024),)


@CASES.add(REPAIRED, CALIBRATION, "Instance norm far from zero")
def instance_norm_at_100() -> Subject:
    return nn.InstanceNorm2d(3, affine=True), (100 + torch.randn(2, 3, 32, 32),)


@CASES.add(REPAIRED, TEST, "Equal terms have equal rounding errors: they do not cancel")
def sum_of_tanh_of_constant() -> Subject:
    return Function(lambda x: torch.tanh(x).sum(-1)), (torch.full((2, 10_000), 0.7) + torch.rand(2, 1),)


@CASES.add(REPAIRED, CALIBRATION, "Two coherent roundings on a constant image")
def sum_of_scaled_constant_image() -> Subject:
    return Function(lambda x: ((x * 1.1) * 0.7).sum((-1, -2))), (torch.full((1, 3, 128, 128), 0.3) + torch.rand(1),)


def _pooled_cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.GELU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )


@CASES.add(REPAIRED, TEST, "Global pooling sums coherent errors of a constant image")
def pooled_cnn_of_constant_image() -> Subject:
    return _pooled_cnn(), (torch.full((1, 3, 64, 64), 0.5) + torch.rand(1),)


@CASES.add(REPAIRED, CALIBRATION, "The same on an image of zeros")
def pooled_cnn_of_zero_image() -> Subject:
    return _pooled_cnn(), (torch.zeros(1, 3, 64, 64),)


@CASES.add(REPAIRED, TEST, "Attention over 1,024 tokens")
def attention_of_1024_tokens() -> Subject:
    return Function(functional.scaled_dot_product_attention), tuple(torch.randn(1, 2, 1024, 32) for _ in range(3))


@CASES.add(REPAIRED, CALIBRATION, "eps belongs to the type that the run used: zero rows make it visible")
def divide_by_norm_plus_finfo_eps() -> Subject:
    def normalize(x: torch.Tensor) -> torch.Tensor:
        return x / (x.norm(dim=-1, keepdim=True) + torch.finfo(x.dtype).eps)

    scale = torch.tensor([1.0, 1e-7, 1e-8, 0.0])[:, None]
    return Function(normalize), (torch.randn(4, 64) * scale,)


def _winograd(tile: int) -> Subject:
    weight = torch.randn(16, 16, 3, 3) / 12
    module = Fork(lambda w, x: functional.conv2d(x, w), lambda w, x: winograd_convolution(x, w, tile), weight)
    return module, (torch.randn(1, 16, 14, 14),)


@CASES.add(REPAIRED, CALIBRATION, "Winograd convolution F(2x2, 3x3), written out with exact constants")
def winograd_f2() -> Subject:
    return _winograd(2)


@CASES.add(REPAIRED, TEST, "Winograd convolution F(4x4, 3x3), written out with exact constants")
def winograd_f4() -> Subject:
    return _winograd(4)


@CASES.add(REPAIRED, TEST, "Winograd convolution F(6x6, 3x3), written out with exact constants")
def winograd_f6() -> Subject:
    return _winograd(6)


@CASES.add(REPAIRED, CALIBRATION, "A float16 product, accumulated as each side likes")
def matmul_in_float16() -> Subject:
    weight = (torch.randn(1024, 32) / 32).half()
    return Function(lambda w, x: x @ w, weight), (torch.randn(8, 1024).half(),)


@CASES.add(REPAIRED, TEST, "The converted program rounds 16 partial sums to float16: another order, the same meaning")
def matmul_with_float16_accumulation() -> Subject:
    weight = (torch.randn(1024, 32) / 32).half()

    def by_parts(weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        total = x[:, :64] @ weight[:64]
        for start in range(64, 1024, 64):
            total = total + x[:, start : start + 64] @ weight[start : start + 64]
        return total

    return Fork(lambda w, x: x @ w, by_parts, weight), (torch.randn(8, 1024).half(),)


@CASES.add(MEANING, CALIBRATION, "Log of a sum of 1e5 exponentials")
def logsumexp_of_100000() -> Subject:
    return Function(lambda x: torch.logsumexp(x, -1)), (torch.randn(2, 100_000),)


@CASES.add(MEANING, TEST, "Probabilities of 1e-5")
def softmax_of_100000() -> Subject:
    return Function(lambda x: torch.softmax(x, -1)), (torch.randn(2, 100_000),)


@CASES.add(MEANING, CALIBRATION, "Group norm far from zero")
def group_norm_at_500() -> Subject:
    return nn.GroupNorm(4, 16), (500 + torch.randn(2, 16, 16, 16),)


@CASES.add(MEANING, TEST, "512 channels: 4,608 terms in each sum")
def wide_convolution() -> Subject:
    return nn.Conv2d(512, 64, 3, padding=1), (torch.randn(1, 512, 12, 12),)


@CASES.add(MEANING, CALIBRATION, "An epsilon that hardly shows after a long sum, kept as it is")
def layer_norm_after_cumulative_sum() -> Subject:
    return Function(lambda x: functional.layer_norm(x.cumsum(-1), (4096,))), (torch.randn(4, 4096),)


@CASES.add(MEANING, TEST, "A long recurrence in one direction")
def lstm() -> Subject:
    return nn.LSTM(16, 32, batch_first=True), (torch.randn(2, 40, 16),)
