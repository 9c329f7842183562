"""The study's classes (Jajal et al., ISSTA 2024) and trueport's own: every label that a result can carry.

Stages are the study's Table 1 plus `runtime`; symptoms its Table 9; causes its Table 7.
"""

from enum import StrEnum


class Stage(StrEnum):
    """Where in a converter something happened, in the order in which a model passes through."""

    LOAD_MODEL = "load-model"
    NODE_CONVERSION = "node-conversion"
    OPTIMIZATION = "optimization"
    EXPORT = "export"
    VALIDATION = "validation"
    RUNTIME = "runtime"
    NOT_DISTINGUISHABLE = "not-distinguishable"


class Symptom(StrEnum):
    """How a failure shows (the study's Table 9)."""

    CRASH = "crash"
    WRONG_MODEL = "wrong-model"
    BAD_PERFORMANCE = "bad-performance"
    BUILD_FAILURE = "build-failure"
    HANG = "hang"
    UNREPORTED = "unreported"


class Cause(StrEnum):
    """Why it failed (the study's Table 7)."""

    INCOMPATIBILITY_INTERNAL = "incompatibility/internal"
    INCOMPATIBILITY_EXTERNAL = "incompatibility/external"
    TYPE_NODE = "type-problem/node"
    TYPE_TENSOR = "type-problem/tensor"
    TYPE_CONVENTIONAL = "type-problem/conventional"
    SHAPE = "shape-problem"
    ALGORITHM_OPTIMIZATION = "algorithmic-error/optimization"
    ALGORITHM_TRACING = "algorithmic-error/tracing"
    ALGORITHM_LOGIC = "algorithmic-error/logic"
    API_MISUSE = "api-misuse"
    TESTING = "testing"
    MISCONFIGURATION = "misconfiguration"
    EXCEPTION_HANDLING = "incorrect-exception-handling"
    ASSIGNMENT = "incorrect-assignment"
    TYPO = "typo"
    OTHER = "other"


class Verdict(StrEnum):
    """What a check says. A comparison that could not be made is never `faithful`."""

    FAITHFUL = "faithful"
    DIVERGENT = "divergent"
    CRASHED = "crashed"
    INCONCLUSIVE = "inconclusive"


class Status(StrEnum):
    """What happened at one checkpoint."""

    OK = "ok"
    DIVERGED = "diverged"
    CRASHED = "crashed"
    NOT_RUN = "not-run"


class Lane(StrEnum):
    """Which comparison decided a checkpoint."""

    MEANING = "meaning"
    ARITHMETIC = "arithmetic"
    STRUCTURE = "structure"
    FIXED = "fixed-tolerance"
    NONE = "none"


class Kind(StrEnum):
    """What a finding is about."""

    VALUE = "value"
    NONFINITE = "nonfinite"
    OUTPUT_COUNT = "output-count"
    OUTPUT_ORDER = "output-order"
    OUTPUT_NAME = "output-name"
    DTYPE = "dtype"
    RANK = "rank"
    SHAPE = "shape"
    INPUT_MISSING = "input-missing"
    INPUT_EXTRA = "input-extra"
    DECLARED_TYPE = "declared-type"
    DYNAMIC_AXIS = "dynamic-axis-not-granted"
    OPSET = "opset-not-granted"
    EXCEPTION = "exception"
    SIGNAL = "signal"
    TIMEOUT = "timeout"
    MEMORY = "memory-limit"
    VALIDATION = "validation-complaint"
    NO_KERNEL = "kernel-missing"
    NEEDS_NO_GRAD = "needs-no-grad"
    STATE_DEPENDENT = "state-dependent"
    TRAINING_MODE = "training-mode"
    NONDETERMINISTIC = "nondeterministic"
    UNOBSERVABLE = "unobservable"
    RESOLUTION = "resolution"
    LANE_MISSING = "lane-missing"
    UNSTABLE = "unstable"
    METRIC = "metric"
    VOTE = "vote"
    FEWER_INPUTS = "fewer-inputs"
    NOT_LOCATED = "not-located"


class Role(StrEnum):
    """The part that a node plays in a finding."""

    INTRODUCES = "introduces"
    PROPAGATES = "propagates"
    CONCERNED = "concerned"
