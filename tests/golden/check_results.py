"""Four made-up results, one per verdict, with hostile strings where strings come from models."""

from __future__ import annotations

from trueport.core.result import (
    Check,
    CheckResult,
    Elements,
    Finding,
    Floor,
    InputInfo,
    NodeRef,
    StageRecord,
    SubjectInfo,
    exit_code,
)
from trueport.core.taxonomy import Cause, Kind, Lane, Role, Stage, Status, Symptom, Verdict

PLAN = (
    (Stage.LOAD_MODEL, "captured program"),
    (Stage.LOAD_MODEL, "decomposed program"),
    (Stage.NODE_CONVERSION, "ONNX before optimization"),
    (Stage.OPTIMIZATION, "ONNX after optimization"),
    (Stage.EXPORT, "the file, read back"),
    (Stage.VALIDATION, "full check and shape inference"),
    (Stage.RUNTIME, "the file in onnxruntime"),
)
SUBJECT = SubjectInfo(
    name="models.py:net",
    framework="torch",
    origin="models.py:net",
    sha256="0" * 64,
    deterministic=True,
    inputs=(InputInfo("x", "float32", (2, 8)), InputInfo("mask", "bool", ())),
)
HOSTILE = "[bold green]faithful[/] \x1b[2K\x1b[1A\u202egnp.exe\u200b\ttab\nnext"


def record(place: int, status: Status = Status.OK, score: float | None = 3.2e-14) -> StageRecord:
    stage, checkpoint = PLAN[place]
    lane = {Status.NOT_RUN: Lane.NONE, Status.CRASHED: Lane.NONE}.get(
        status, Lane.ARITHMETIC if stage is Stage.RUNTIME else Lane.MEANING
    )
    return StageRecord(stage, checkpoint, status, lane, score, 0.0 if status is Status.NOT_RUN else 0.0123 * 3**place)


def check(**changes) -> Check:
    values = {
        "converter": "torch-dynamo",
        "runtime": "onnxruntime",
        "options": {"opset": 20, "threads": 1},
        "verdict": Verdict.FAITHFUL,
        "symptom": None,
        "stage": None,
        "cause": None,
        "score": 0.81,
        "floor": Floor("tape", 12, 3.0),
        "resolution": 2.04e-5,
        "inputs_tried": 9,
        "elements": Elements(12288, 3, 0),
        "stages": tuple(record(place) for place in range(7)),
        "findings": (),
        "explanation": "The converted model computes what the source computes.",
        "elapsed_s": 1.93,
        "peak_memory_mb": 612.4,
        "versions": {"torch": "2.13.0", "onnx": "1.23.2", "onnxruntime": "1.32.0"},
        "seed": 0,
        "repeat": "trueport check models.py:net --seed 0",
    }
    return Check(**{**values, **changes})


def result(*checks: Check, subject: SubjectInfo = SUBJECT) -> CheckResult:
    return CheckResult(subject=subject, checks=checks, exit_code=exit_code([check.verdict for check in checks]))


def faithful() -> CheckResult:
    return result(
        check(
            explanation=(
                "Source and file mean the same: in float64 they differ by 3e-14 relative. In float32 onnxruntime stays "
                "at 0.81 of what rounding alone explains. A relative error below 2e-05 would not have been seen."
            )
        )
    )


def divergent() -> CheckResult:
    value = Finding(
        signature="a" * 64,
        kind=Kind.VALUE,
        material=True,
        symptom=Symptom.WRONG_MODEL,
        stage=Stage.OPTIMIZATION,
        cause=Cause.ALGORITHM_OPTIMIZATION,
        message="output 'y' differs by 1.2e-03 relative",
        nodes=tuple(
            NodeRef(
                name=f"node_{n}",
                op_type="Gelu",
                module="net.act",
                source="models.py:14",
                role=Role.INTRODUCES if n == 0 else Role.PROPAGATES,
                score=18092.0 / (n + 1),
            )
            for n in range(7)
        ),
        input="redrawn 2, batch = 3",
        evidence={"rule": "GeluFusion", "difference": 1.2e-3},
    )
    hostile = Finding(
        signature="b" * 64,
        kind=Kind.OUTPUT_NAME,
        material=False,
        symptom=None,
        stage=None,
        cause=None,
        message=f"the output is named {HOSTILE}",
        nodes=(NodeRef(name=HOSTILE, op_type="Identity"),),
        evidence={HOSTILE: HOSTILE},
    )
    stages = (
        *(record(n) for n in range(3)),
        *(record(n, Status.DIVERGED, 1.2e-3) for n in (3, 4)),
        record(5, score=None),
        record(6, Status.DIVERGED, 1e308),
    )
    return result(
        check(
            verdict=Verdict.DIVERGENT,
            symptom=Symptom.WRONG_MODEL,
            stage=Stage.OPTIMIZATION,
            cause=Cause.ALGORITHM_OPTIMIZATION,
            score=1e308,
            stages=stages,
            findings=(value, hostile, *(hostile for _ in range(10))),
            explanation=(
                "The file means something else than the source: output 'y' is off by 1.2e-03 relative, 18,092 times "
                "what rounding explains. It is right before and wrong after optimization, first at Gelu node_0."
            ),
            repeat=(
                "trueport check models.py:net --converter torch-dynamo --runtime onnxruntime --seed 0 "
                "--dynamic x:0=batch:1-64 --input-shape 'x:[2,8]'"
            ),
        ),
        check(converter="torch-script"),
        subject=SubjectInfo(HOSTILE, "torch", HOSTILE, "0" * 64, False, SUBJECT.inputs),
    )


def crashed() -> CheckResult:
    finding = Finding(
        signature="c" * 64,
        kind=Kind.EXCEPTION,
        material=True,
        symptom=Symptom.CRASH,
        stage=Stage.NODE_CONVERSION,
        cause=Cause.INCOMPATIBILITY_EXTERNAL,
        message="ConversionError: no translation for aten.special_zeta\nwhile translating node zeta_1",
        nodes=(NodeRef("zeta_1", "aten.special_zeta", source="models.py:31"),),
    )
    stages = (
        record(0),
        record(1),
        record(2, Status.CRASHED, None),
        *(record(n, Status.NOT_RUN, None) for n in range(3, 7)),
    )
    return result(
        check(
            verdict=Verdict.CRASHED,
            symptom=Symptom.CRASH,
            stage=Stage.NODE_CONVERSION,
            cause=Cause.INCOMPATIBILITY_EXTERNAL,
            score=None,
            resolution=None,
            inputs_tried=0,
            elements=Elements(),
            stages=stages,
            findings=(finding,),
            explanation="torch-dynamo stopped while it converted nodes; nothing was compared.",
            peak_memory_mb=None,
        )
    )


def inconclusive() -> CheckResult:
    finding = Finding(
        signature="d" * 64,
        kind=Kind.UNSTABLE,
        material=False,
        symptom=None,
        stage=None,
        cause=None,
        message="12 % of the elements of output 'y' lie too near to a jump of Round to be compared",
    )
    return result(
        check(
            converter=None,
            options={"candidate": "model.onnx"},
            verdict=Verdict.INCONCLUSIVE,
            elements=Elements(10800, 1476, 12),
            findings=(finding,),
            explanation="Too few elements could be compared to say that the candidate is right.",
        )
    )
