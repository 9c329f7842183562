"""Makes what a model's strings do to a terminal visible instead of letting them do it.

Names of nodes, parameters and files come from model files, which are untrusted: an escape sequence in one could
recolour a verdict, move the cursor over it or set the clipboard. Invisible and direction-changing characters could hide
or reorder text.
"""

from __future__ import annotations

import unicodedata

# Control, format (zero width, bidirectional), surrogate, line and paragraph separators.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def visible(text: str, *, lines: bool = False) -> str:
    r"""Returns the text with every character that is no plain sign written as an escape.

    Args:
        text: from anywhere.
        lines: keep line feeds, for messages of several lines.

    >>> print(visible("\x1b[31mred"))
    \x1b[31mred
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        _escaped(sign) if unicodedata.category(sign) in _UNSAFE and not (lines and sign == "\n") else sign
        for sign in text
    )


def _escaped(sign: str) -> str:
    return sign.encode("unicode_escape", errors="backslashreplace").decode("ascii")
