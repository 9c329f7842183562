"""The float64 replay of a PyTorch program, operator by operator, beside its real run."""

from trueport.adapters.float64.torch.tape import Tape, TapeResult, record

__all__ = ["Tape", "TapeResult", "record"]
