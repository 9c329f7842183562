"""What adapters are certified with, those of other packages and our own: see `trueport.testing.adapter_suite`."""

from trueport.testing import adapter_suite

__all__ = ["adapter_suite"]
