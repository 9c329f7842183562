"""The cause of a failure in the study's taxonomy, from evidence and never from log text; what to do; known faults."""

from trueport.cause.advice import Circumstances, advice
from trueport.cause.evidence import Evidence, Located
from trueport.cause.guess import Confidence, Guess, guess
from trueport.cause.known import KnownFault, Sighting, known_fault

__all__ = [
    "Circumstances",
    "Confidence",
    "Evidence",
    "Guess",
    "KnownFault",
    "Located",
    "Sighting",
    "advice",
    "guess",
    "known_fault",
]
