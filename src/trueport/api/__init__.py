"""The library's one way in: puts the engines together as users call them."""

from trueport.api.check import check, check_path
from trueport.api.warm import Checker
from trueport.api.zoo import list_zoo

__all__ = ["Checker", "check", "check_path", "list_zoo"]
