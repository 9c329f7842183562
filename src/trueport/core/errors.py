"""The tree of exceptions; everything else that is raised is a bug of trueport.

::

    TrueportError
    ├── UsageError     what the user gave cannot be used (exit code 2)
    │   └── SourceError    the source model itself fails on its own example
    ├── ToolError      a converter or runtime failed in a way that is no result
    │   └── MissingToolError   a requested tool is not installed (exit code 2)
    └── StoreError     a stored result cannot be read or written
"""


class TrueportError(Exception):
    """Root of all errors that trueport raises on purpose."""


class UsageError(TrueportError):
    """What the user gave cannot be used; the message says what was expected, what came and what to do."""


class SourceError(UsageError):
    """The source model fails on its own example, so there is nothing to compare with."""


class ToolError(TrueportError):
    """A converter or a runtime failed in a way that is no result of a check."""


class MissingToolError(ToolError):
    """A requested tool is not installed.

    Attributes:
        tool: the name by which it was requested.
        install: the command that installs it.
    """

    def __init__(self, tool: str, install: str) -> None:
        super().__init__(f"'{tool}' was requested and is not installed; install it with: {install}")
        self.tool = tool
        self.install = install


class StoreError(TrueportError):
    """A stored result cannot be read or written."""
