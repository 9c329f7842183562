"""A first guess at the cause, in the study's taxonomy, from evidence and never from log text."""

from trueport.cause.guess import Evidence, Guess, guess

__all__ = ["Evidence", "Guess", "guess"]
