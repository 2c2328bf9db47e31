"""The names of what held memory at a peak, as `AtPeak.op` has them: written here, and read here."""

_MORE = " ("


def of_ops(op: str, count: int) -> str:
    """Return the name of so many ops that are called alike: «map/while/mul (3 ops)»."""
    return f"{op}{_MORE}{count} ops)" if count > 1 else op


def of_xla_buffer(kind: str, cluster: str) -> str:
    """Return the name of what a function compiled by XLA holds: «XLA output buffer (cluster f)»."""
    return f"XLA {kind} buffer{_MORE}cluster {cluster})"


def kind(name: str) -> str:
    """Return the kind of op that a name is of, without the scopes that it stands in: «mul»."""
    return name.partition(_MORE)[0].rsplit("/", 1)[-1]
