"""`python -m trueport` is the same as `trueport`."""

import sys

from trueport.cli import main

if __name__ == "__main__":
    sys.exit(main())
