"""Names of an address's parameters, which are the keys of their widgets, too."""


def size_key(name: str) -> str:
    """Return the parameter of a workload's size."""
    return f"size_{name}"


def option_key(name: str) -> str:
    """Return the parameter of a workload's option."""
    return f"option_{name}"
