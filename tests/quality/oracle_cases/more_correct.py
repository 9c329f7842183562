"""Right conversions of our own: ordinary practice that is hard to compare."""

import math

import torch
from torch import nn
from torch.nn import functional

from tests.quality.oracle_cases.case import CALIBRATION, OWN, TEST, CaseList, Subject
from tests.quality.oracle_cases.fork import Fork, Function

CASES = CaseList(right=True)


@CASES.add(OWN, CALIBRATION, "The norm of the weights is folded in float32")
def weight_normed_convolution() -> Subject:
    conv = nn.utils.parametrizations.weight_norm(nn.Conv1d(16, 32, 5, padding=2))
    return nn.Sequential(conv, nn.GELU()), (torch.randn(2, 16, 50),)


@CASES.add(OWN, TEST, "Folding divides by the root of variances near eps")
def folded_batch_norm_of_tiny_variance() -> Subject:
    norm = nn.BatchNorm2d(16)
    norm.running_var = 1e-6 * (torch.rand(16) + 0.5)
    norm.running_mean = torch.randn(16)
    return nn.Sequential(nn.Conv2d(8, 16, 3), norm, nn.ReLU()), (torch.randn(1, 8, 16, 16),)


@CASES.add(OWN, CALIBRATION, "Angles of up to 2,000 radians, computed in the forward pass")
def rotary_embedding_computed_in_forward() -> Subject:
    def rotate(x: torch.Tensor) -> torch.Tensor:
        length, width = x.shape[-2:]
        frequency = 1.0 / (10000.0 ** (torch.arange(0, width, 2, dtype=x.dtype) / width))
        angle = torch.arange(length, dtype=x.dtype)[:, None] * frequency[None, :]
        first, second = x.chunk(2, -1)
        cosine, sine = angle.cos(), angle.sin()
        return torch.cat([first * cosine - second * sine, first * sine + second * cosine], -1)

    return Function(rotate), (torch.randn(1, 2, 2048, 32),)


@CASES.add(OWN, TEST, "Squares of 1e-36 are near underflow; eps holds them up")
def rms_norm_near_underflow() -> Subject:
    def norm(x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 2e-8)

    scale = torch.tensor([1.0, 1e-4, 1e-12, 1e-18])[:, None]
    return Function(norm), (torch.randn(4, 64) * scale,)


@CASES.add(OWN, CALIBRATION, "Masked by -infinity; no row is masked fully")
def softmax_masked_by_infinity() -> Subject:
    def attend(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.softmax(scores.masked_fill(mask, float("-inf")), -1)

    mask = torch.rand(4, 16, 16) < 0.3
    mask[..., 0] = False
    return Function(attend), (torch.randn(4, 16, 16), mask)


@CASES.add(OWN, TEST, "Masked by the lowest number; one row is masked fully")
def softmax_masked_by_lowest_number() -> Subject:
    def attend(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        lowest = torch.finfo(torch.float32).min
        return torch.softmax(scores + mask.to(scores.dtype) * lowest, -1)

    mask = torch.rand(4, 16, 16) < 0.3
    mask[0, 0] = True
    return Function(attend), (torch.randn(4, 16, 16), mask)


@CASES.add(OWN, CALIBRATION, "Logarithms of probabilities of 1e-20")
def log_of_small_probabilities() -> Subject:
    return Function(lambda x: torch.log(torch.softmax(x, -1).clamp(min=1e-30))), (12 * torch.randn(4, 64),)


@CASES.add(OWN, TEST, "A loss as a head, with class indices as a second input")
def cross_entropy_head() -> Subject:
    return Function(lambda x, target: functional.cross_entropy(x, target)), (
        10 * torch.randn(32, 100),
        torch.randint(100, (32,)),
    )


class _Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.inner(self.norm(x))


@CASES.add(OWN, CALIBRATION, "Fifty residual layers")
def deep_residual_stack() -> Subject:
    return nn.Sequential(*(_Residual(24) for _ in range(50))), (torch.randn(2, 24),)


@CASES.add(OWN, TEST, "300 steps with weights that keep the state alive")
def lstm_of_300_steps() -> Subject:
    lstm = nn.LSTM(8, 16)
    for parameter in lstm.parameters():
        nn.init.uniform_(parameter, -0.8, 0.8)
    return lstm, (torch.randn(300, 1, 8),)


@CASES.add(OWN, CALIBRATION, "What remains of 1e5 after its mean is subtracted")
def subtract_mean_at_100000() -> Subject:
    return Function(lambda x: x - x.mean(-1, keepdim=True)), (1e5 + torch.randn(4, 100),)


@CASES.add(OWN, TEST, "Token ids, and positions as floats")
def embedding_with_float_positions() -> Subject:
    def embed(table: nn.Module, ids: torch.Tensor) -> torch.Tensor:
        position = torch.arange(ids.shape[1], device=ids.device).float() / ids.shape[1]
        return table(ids) + torch.sin(100 * position)[None, :, None]

    return Function(embed, nn.Embedding(100, 16)), (torch.randint(100, (2, 30)),)


@CASES.add(OWN, CALIBRATION, "Interpolation weights at fractional places")
def bilinear_interpolation() -> Subject:
    return Function(lambda x: functional.interpolate(x, scale_factor=2.5, mode="bilinear")), (torch.randn(1, 3, 8, 8),)


@CASES.add(OWN, TEST, "Nearly orthogonal vectors of 1,024 entries")
def cosine_similarity() -> Subject:
    return Function(lambda x, y: functional.cosine_similarity(x, y, dim=-1)), (
        torch.randn(16, 1024),
        torch.randn(16, 1024),
    )


@CASES.add(
    OWN, CALIBRATION, "Probabilities down to 1e-13: a runtime's sigmoid has its limits, but the meaning is right"
)
def sigmoid_of_large_logits() -> Subject:
    return Function(lambda x: torch.sigmoid(x)), (torch.linspace(-17, 30, 256).reshape(4, 64) + torch.rand(1),)


@CASES.add(OWN, TEST, "Order statistics")
def median_by_sorting() -> Subject:
    def median(x: torch.Tensor) -> torch.Tensor:
        ordered = torch.sort(x, dim=-1).values
        return (ordered[..., 31] + ordered[..., 32]) / 2

    return Function(median), (torch.randn(8, 64),)


@CASES.add(OWN, CALIBRATION, "The largest five of distinct values, with their places")
def top_five() -> Subject:
    return Function(lambda x: torch.topk(x, 5, dim=-1)), (torch.randperm(400).reshape(4, 100) / 7,)


@CASES.add(OWN, TEST, "A class label as the only output")
def argmax_of_logits() -> Subject:
    return Function(lambda linear, x: linear(x).argmax(-1), nn.Linear(32, 50)), (torch.randn(64, 32),)


@CASES.add(OWN, CALIBRATION, "Steps of 1/8 of something computed")
def floor_in_eighths() -> Subject:
    return Function(lambda linear, x: torch.floor(linear(x) * 8) / 8, nn.Linear(32, 64)), (torch.randn(16, 32),)


@CASES.add(OWN, TEST, "Fake quantization of activations")
def fake_quantization() -> Subject:
    def quantize(linear: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return torch.clamp(torch.round(linear(x) / 0.037), -128, 127) * 0.037

    return Function(quantize, nn.Linear(32, 64)), (torch.randn(16, 32),)


@CASES.add(OWN, CALIBRATION, "Products along an axis, via logarithms")
def cumulative_product() -> Subject:
    return Function(lambda x: torch.exp(torch.cumsum(torch.log(x), -1))), (torch.rand(4, 200) + 0.6,)


@CASES.add(OWN, TEST, "A product of 64 factors")
def product() -> Subject:
    return Function(lambda x: torch.prod(x, dim=-1)), (torch.rand(8, 64) + 0.6,)


@CASES.add(OWN, CALIBRATION, "Powers with fractional exponents")
def fractional_powers() -> Subject:
    return Function(lambda x: torch.pow(x, 2.4) + torch.pow(x, -0.3)), (torch.rand(4, 64) * 20 + 0.01,)


@CASES.add(OWN, TEST, "Bins: comparisons only, exact for both sides")
def bucketize() -> Subject:
    edges = torch.tensor([-1.0, -0.5, 0.0, 0.5, 1.0])
    return Function(lambda edges, x: torch.bucketize(x, edges), edges), (torch.randn(4, 64),)


@CASES.add(OWN, CALIBRATION, "Integers beyond 2**24")
def integer_arithmetic() -> Subject:
    return Function(lambda a, b: (a * b + 7) % 1000003), (
        torch.randint(1, 1 << 20, (4, 16)),
        torch.randint(1, 1 << 20, (4, 16)),
    )


@CASES.add(OWN, TEST, "Boolean in, boolean out")
def boolean_masks() -> Subject:
    def combine(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return a & ~b, torch.where(a | b, 1.0, -1.0)

    return Function(combine), (torch.rand(4, 16) < 0.5, torch.rand(4, 16) < 0.5)


@CASES.add(OWN, CALIBRATION, "A float16 block")
def float16_block() -> Subject:
    block = nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.Softmax(-1))
    return block.half(), (torch.randn(8, 64).half(),)


@CASES.add(OWN, TEST, "Broadcasting over three axes")
def broadcasting() -> Subject:
    return Function(lambda a, b, c: (a * b - c) / (1 + b * b)), (
        torch.randn(4, 1, 6),
        torch.randn(5, 1),
        torch.randn(2, 1, 1, 6),
    )


@CASES.add(OWN, CALIBRATION, "An output without axes")
def scalar_output() -> Subject:
    return Function(lambda x: (x * x).sum().sqrt()), (torch.randn(100),)


@CASES.add(OWN, TEST, "Two outputs without elements, which the exporter's own verification fails on")
def empty_outputs() -> Subject:
    return Function(lambda x: (x[:, 4:], x[:, :0] + 1, x * 2)), (torch.randn(3, 4),)


class _Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Linear(16, 32)

    def forward(self, info: dict[str, torch.Tensor], image: torch.Tensor) -> dict[str, object]:
        hidden = torch.tanh(self.trunk(image)) * info["scale"]
        return {"hidden": hidden, "heads": (hidden.sum(-1), [hidden.amax(-1), hidden + info["shift"]])}


@CASES.add(OWN, CALIBRATION, "Nested inputs and outputs")
def nested_inputs_and_outputs() -> Subject:
    return _Nested(), ({"scale": torch.rand(1), "shift": torch.randn(32)}, torch.randn(4, 16))


@CASES.add(OWN, TEST, "Softmax written out: another program, the same meaning")
def softmax_written_out() -> Subject:
    def written_out(x: torch.Tensor) -> torch.Tensor:
        exponential = torch.exp(x - x.amax(-1, keepdim=True))
        return exponential / exponential.sum(-1, keepdim=True)

    return Fork(lambda x: torch.softmax(x, -1), written_out), (5 * torch.randn(4, 100),)


@CASES.add(OWN, CALIBRATION, "Layer norm written out at mean 50: another program, the same meaning")
def layer_norm_written_out() -> Subject:
    def written_out(x: torch.Tensor) -> torch.Tensor:
        deviation = x - x.mean(-1, keepdim=True)
        return deviation / torch.sqrt((deviation * deviation).mean(-1, keepdim=True) + 1e-5)

    return Fork(lambda x: functional.layer_norm(x, (256,)), written_out), (50 + torch.randn(4, 256),)


@CASES.add(OWN, TEST, "A convolution as a product of unfolded patches")
def convolution_as_matmul() -> Subject:
    def unfolded(weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        patches = x.unfold(2, 3, 1).unfold(3, 3, 1)
        return torch.einsum("nchwij,ocij->nohw", patches, weight)

    module = Fork(lambda w, x: functional.conv2d(x, w), unfolded, torch.randn(8, 16, 3, 3))
    return module, (torch.randn(1, 16, 12, 12),)


@CASES.add(OWN, CALIBRATION, "Attention scores of several hundred: softmax picks one key")
def attention_with_sharp_scores() -> Subject:
    return Function(functional.scaled_dot_product_attention), tuple(
        scale * torch.randn(1, 2, 40, 16) for scale in (10.0, 10.0, 1.0)
    )


@CASES.add(OWN, TEST, "The difference of two nearly equal logarithms")
def log_odds_of_close_probabilities() -> Subject:
    def difference(x: torch.Tensor) -> torch.Tensor:
        return torch.log1p(torch.exp(x)) - torch.log1p(torch.exp(x + 1e-3))

    return Function(difference), (torch.randn(4, 64),)


@CASES.add(OWN, CALIBRATION, "Rows whose scales span 20 decades")
def linear_on_rows_of_different_scale() -> Subject:
    scale = 10.0 ** torch.linspace(-10, 10, 16)[:, None]
    return nn.Sequential(nn.Linear(32, 32, bias=False), nn.ReLU()), (torch.randn(16, 32) * scale,)


@CASES.add(OWN, TEST, "Periods of a mel scale: log, division and sine in a row")
def sine_of_log_frequencies() -> Subject:
    return Function(lambda x: torch.sin(2595 * torch.log10(1 + x / 700))), (torch.rand(4, 64) * 8000,)


@CASES.add(OWN, CALIBRATION, "A rectangle's areas by subtraction of close coordinates")
def intersection_over_union() -> Subject:
    def overlap(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        low = torch.maximum(a[:, None, :2], b[None, :, :2])
        high = torch.minimum(a[:, None, 2:], b[None, :, 2:])
        common = (high - low).clamp(min=0).prod(-1)
        area_a, area_b = ((box[:, 2:] - box[:, :2]).prod(-1) for box in (a, b))
        return common / (area_a[:, None] + area_b[None, :] - common)

    corner = 600 * torch.rand(2, 20, 2)
    boxes = torch.cat([corner, corner + 1 + 40 * torch.rand(2, 20, 2)], -1)
    return Function(overlap), (boxes[0], boxes[1])


@CASES.add(OWN, TEST, "A chaotic recurrence: errors grow a thousandfold in 24 steps")
def amplifying_recurrence() -> Subject:
    def iterate(x: torch.Tensor) -> torch.Tensor:
        for _ in range(24):
            x = 3.7 * x * (1 - x)
        return x

    return Function(iterate), (torch.rand(4, 16) * 0.8 + 0.1,)


@CASES.add(OWN, CALIBRATION, "A circle constant that the source rounds to float32 itself")
def literal_of_many_digits() -> Subject:
    return Function(lambda x: torch.cos(x * math.pi) * 0.7071067811865476), (torch.randn(4, 64),)
