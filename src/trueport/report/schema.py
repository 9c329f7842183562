"""The JSON Schema of a result, generated from the values themselves and shipped as a file beside this module."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import msgspec

from trueport.core.result import SCHEMA, CheckResult

FILE_NAME = "check.schema.json"
_EXIT_CODES = [0, 1, 3]


def generate() -> dict[str, Any]:
    """Returns the schema of `CheckResult.to_json`, made from the dataclasses and their docstrings."""
    (reference,), components = msgspec.json.schema_components([CheckResult], ref_template="#/$defs/{name}")
    result = components[reference["$ref"].rpartition("/")[2]]
    result["properties"]["schema"] = {"const": SCHEMA}
    result["properties"]["exit_code"] = {"enum": _EXIT_CODES}
    # Readers tell results apart by it, so it must be there although the constructor knows its value.
    result["required"].append("schema")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{SCHEMA.replace('/', ':')}",
        "title": SCHEMA,
        "description": (
            "The result of `trueport check --json`. Additions do not change the number, so readers must accept "
            "properties that they do not know. A score of 1e308 stands for infinity."
        ),
        **reference,
        "$defs": dict(sorted(components.items())),
    }


def generate_text() -> str:
    """Returns the generated schema as the text of the shipped file."""
    return json.dumps(generate(), indent=2, ensure_ascii=False) + "\n"


def shipped_text() -> str:
    """Returns the text of the shipped file."""
    return resources.files("trueport.report").joinpath(FILE_NAME).read_text(encoding="utf-8")
