"""stub"""


def write(records, folder):
    """Stub."""
