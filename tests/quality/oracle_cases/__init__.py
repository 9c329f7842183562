"""Conversions whose truth is known, collected by name: what the oracle is measured against."""

from tests.quality.oracle_cases import correct, more_correct, more_wrong, real_models, wrong
from tests.quality.oracle_cases.case import OracleCase

CASES: dict[str, OracleCase] = {
    case.name: case for module in (correct, real_models, more_correct, wrong, more_wrong) for case in module.CASES
}

__all__ = ["CASES", "OracleCase"]
