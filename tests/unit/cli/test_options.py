"""Every option arrives in `CheckOptions`, and every mistake in one line that says what to do."""

from __future__ import annotations

import pytest

from trueport.core.options import CheckOptions, DynamicAxis, Tolerance, ToleranceKind


def test_no_options_are_the_defaults(trueport, api):
    assert trueport("check", "m.py:net").exit_code == 0
    assert api.calls == [("m.py:net", CheckOptions())]


CANDIDATE = ["--candidate", "c.onnx"]
OPTIONS = [
    (CANDIDATE, {"candidate": "c.onnx"}),
    ([*CANDIDATE, "--map", "x=a/b=c:0", "--map", "y=z"],
     {"candidate": "c.onnx", "name_map": {"x": "a/b=c:0", "y": "z"}}),
    (["--converter", "torch-dynamo,torch-script"], {"converters": ("torch-dynamo", "torch-script")}),
    (["--converter", "torch-script", "--converter", "a, b,a"], {"converters": ("torch-script", "a", "b")}),
    (["--runtime", "onnxruntime,onnx-reference"], {"runtimes": ("onnxruntime", "onnx-reference")}),
    (["--provider", "CUDAExecutionProvider"], {"provider": "CUDAExecutionProvider"}),
    (["--threads", "4"], {"threads": 4}),
    (["--opset", "99"], {"opset": 99}),
    (["--inputs", "in.npz"], {"inputs": "in.npz"}),
    (["--inputs", "in.py:examples"], {"inputs": "in.py:examples"}),
    (["--inputs", "in.py"], {"inputs": "in.py"}),
    (["--input-shape", "x:[1,3, 224,224]"], {"input_shapes": {"x": (1, 3, 224, 224)}}),
    (["--input-shape", "x:0:[2]", "--input-shape", "s:[]"], {"input_shapes": {"x:0": (2,), "s": ()}}),
    (["--dynamic", "x:0=batch"], {"dynamic": (DynamicAxis("x", 0, "batch"),)}),
    (["--dynamic", "x:0=n:2-8", "--dynamic", "y:1=m:3-"],
     {"dynamic": (DynamicAxis("x", 0, "n", 2, 8), DynamicAxis("y", 1, "m", 3, None))}),
    (["--samples", "7"], {"samples": 7}),
    (["--seed", "12"], {"seed": 12}),
    (["--nonfinite"], {"nonfinite": True}),
    (["--timeout", "1.5"], {"timeout_s": 1.5}),
    (["--timeout", "none"], {"timeout_s": None}),
    (["--memory-mb", "1000"], {"memory_mb": 1000}),
    (["--memory-mb", "none"], {"memory_mb": None}),
    (["--no-isolate"], {"isolate": False}),
    (["--tolerance", "rtol=1e-3,atol=1e-5"], {"tolerance": Tolerance(ToleranceKind.FIXED, 1e-3, 1e-5)}),
    (["--tolerance", "atol=0.1"], {"tolerance": Tolerance(ToleranceKind.FIXED, 0.0, 0.1)}),
    (["--metric", "metric.py:accuracy", "--data", "data.bin"], {"metric": "metric.py:accuracy", "data": "data.bin"}),
    (["--save", "case"], {"save": "case"}),
    (["--trust-pickle"], {"trust_pickle": True}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "expected"), OPTIONS, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_option(trueport, api, arguments, expected):
    outcome = trueport("check", "m.py", *arguments)
    assert outcome.exit_code == 0, outcome.stderr
    assert api.calls == [("m.py", CheckOptions(**expected))]


@pytest.mark.parametrize(
    ("arguments", "expected"), OPTIONS, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_options_give_back_the_command_line_that_gives_them(trueport, api, arguments, expected):
    options = CheckOptions(**expected)
    trueport("check", "m.py", *options.to_arguments())
    assert api.calls == [("m.py", options)]


MISTAKES = [
    ([], "Missing argument 'MODEL'"),
    (["m.py", "other"], "unexpected extra argument"),
    (["m.py", "--smaples", "3"], "--samples"),
    (["m.py", "--candidate", "nowhere.onnx"], "'nowhere.onnx', which does not exist"),
    (["m.py", "--candidate", "data.bin"], "ends with .onnx"),
    (["m.py", "--candidate", "."], "ends with .onnx"),
    (["m.py", "--map", "x=y"], "candidate"),
    (["m.py", *CANDIDATE, "--map", "x"], "such as 'x=input_1'"),
    (["m.py", *CANDIDATE, "--map", "x=a", "--map", "x=b"], "'x' twice"),
    (["m.py", *CANDIDATE, "--map", "x=a", "--map", "y=a"], "each input of the candidate once"),
    (["m.py", *CANDIDATE, "--converter", "torch-script"], "--converter is for a conversion"),
    (["m.py", *CANDIDATE, "--opset", "18"], "--opset is for a conversion"),
    (["m.py", "--converter", "torch dynamo"], "separated by commas"),
    (["m.py", "--converter", ""], "separated by commas"),
    (["m.py", "--runtime", "onnxruntime,"], "separated by commas"),
    (["m.py", "--threads", "0"], "--threads"),
    (["m.py", "--threads", "two"], "--threads"),
    (["m.py", "--opset", "0"], "--opset"),
    (["m.py", "--inputs", "in.csv"], "'file.npz' or 'file.py:NAME'"),
    (["m.py", "--inputs", "gone.npz"], "does not exist"),
    (["m.py", "--inputs", "gone.py:x"], "'gone.py', which does not exist"),
    (["m.py", "--input-shape", "x=1,3"], "such as 'x:[1,3,224,224]'"),
    (["m.py", "--input-shape", "x:[1,-3]"], "x:[1,-3]"),
    (["m.py", "--input-shape", "x:[1,²]"], "such as"),
    (["m.py", "--input-shape", "x:[1,,3]"], "x:[1,,3]"),
    (["m.py", "--input-shape", "x:[1]", "--input-shape", "x:[2]"], "'x' twice"),
    (["m.py", "--dynamic", "x:batch"], "such as 'x:0=batch'"),
    (["m.py", "--dynamic", "x:-1=n"], "such as 'x:0=batch'"),
    (["m.py", "--dynamic", "x:0=n:9-2"], "MIN <= MAX"),
    (["m.py", "--dynamic", "x:0=n", "--dynamic", "x:0=m"], "twice"),
    (["m.py", "--dynamic", "x:0=n:1-4", "--dynamic", "y:0=n:1-5"], "two ranges"),
    (["m.py", "--samples", "0"], "--samples"),
    (["m.py", "--seed", "-1"], "--seed"),
    (["m.py", "--timeout", "0"], "seconds > 0, or 'none'"),
    (["m.py", "--timeout", "nan"], "seconds > 0"),
    (["m.py", "--timeout", "inf"], "seconds > 0"),
    (["m.py", "--memory-mb", "1.5"], "whole number of megabytes"),
    (["m.py", "--tolerance", "1e-3"], "'measured' or 'rtol=1e-3,atol=1e-5'"),
    (["m.py", "--tolerance", "rtol=a"], "'measured' or"),
    (["m.py", "--tolerance", "rtol=1,rtol=2"], "'measured' or"),
    (["m.py", "--tolerance", "rtol=inf"], "finite"),
    (["m.py", "--tolerance", "atol=-1"], "finite"),
    (["m.py", "--metric", "metric.py:f"], "together"),
    (["m.py", "--metric", "metric.py", "--data", "data.bin"], "'file.py:NAME'"),
    (["m.py", "--data", "gone"], "does not exist"),
    (["m.py", "--fail-on", "diverged"], "'diverged'"),
    (["m.py", "--save", "data.bin"], "a folder"),
    (["m.py", "--json", "nowhere/x.json"], "a folder that exists"),
    (["m.py", "--json", "."], "expected '-' or a file"),
    (["m.py", "-v", "-q"], "--verbose or --quiet"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), MISTAKES, ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_mistake(trueport, api, arguments, message):
    outcome = trueport("check", *arguments)
    assert outcome.exit_code == 2
    assert outcome.stdout == ""
    assert outcome.stderr.startswith("trueport: error: ")
    assert outcome.stderr.count("\n") == 1
    assert message in outcome.stderr
    assert api.calls == []
