"""Winograd convolution F(m x m, 3 x 3) with exact constants.

It equals the direct convolution over the real numbers, rounds quite differently, and is what runtimes do inside. The
matrices are those of Lavin and Gray (2015) with every row of the filter transform scaled to integers; the scales are
divided out afterwards, so that no constant is rounded.
"""

from fractions import Fraction

import torch

_POINTS = {
    2: [Fraction(0), Fraction(1), Fraction(-1)],
    4: [Fraction(0), Fraction(1), Fraction(-1), Fraction(2), Fraction(-2)],
    6: [Fraction(0), Fraction(1), Fraction(-1), Fraction(2), Fraction(-2), Fraction(1, 2), Fraction(-1, 2)],
}


def _polynomial(roots: list[Fraction]) -> list[Fraction]:
    """Coefficients, lowest first, of the monic polynomial with these roots."""
    coefficients = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *coefficients]
        coefficients = [a - root * b for a, b in zip(shifted, [*coefficients, Fraction(0)], strict=True)]
    return coefficients


def _matrices(tile: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Output, filter and data transforms (Toom-Cook, transposed), and the divisors of the filter's rows."""
    points = _POINTS[tile]
    size = tile + 2
    output = [[point**power for point in points] + [Fraction(int(power == tile - 1))] for power in range(tile)]
    filters, data, divisors = [], [], []
    for index, point in enumerate(points):
        others = points[:index] + points[index + 1 :]
        divisor = Fraction(1)
        for other in others:
            divisor *= point - other
        scale = point.denominator**2
        filters.append([scale * point**power for power in range(3)])
        divisors.append(divisor * scale)
        row = _polynomial(others)
        data.append(row + [Fraction(0)] * (size - len(row)))
    filters.append([Fraction(0), Fraction(0), Fraction(1)])
    divisors.append(Fraction(1))
    data.append(_polynomial(points))

    def exact(rows: list[list[Fraction]]) -> torch.Tensor:
        return torch.tensor([[float(value) for value in row] for row in rows])

    return exact(output), exact(filters), exact(data), torch.tensor([float(value) for value in divisors])


def winograd_convolution(x: torch.Tensor, weight: torch.Tensor, tile: int) -> torch.Tensor:
    """The valid 3 x 3 convolution of `x`[n,c,h,w], whose output height and width are multiples of `tile`."""
    output, filters, data, divisors = (matrix.to(x.dtype) for matrix in _matrices(tile))
    size = tile + 2
    transformed = filters @ weight.to(x.dtype) @ filters.T / (divisors[:, None] * divisors[None, :])
    patches = x.unfold(2, size, tile).unfold(3, size, tile)
    spectrum = data @ patches @ data.T
    product = torch.einsum("ncijab,ocab->noijab", spectrum, transformed)
    tiles = output @ product @ output.T
    batch, channels, rows, columns = tiles.shape[:4]
    return tiles.permute(0, 1, 2, 4, 3, 5).reshape(batch, channels, rows * tile, columns * tile)
