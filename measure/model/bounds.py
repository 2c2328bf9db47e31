"""The bounds of what a run file may hold: they are part of the types, so that whoever reads a file checks them.

No measurement comes near the bounds: they keep what is read from stopping whoever shows or analyses it. Numbers are
finite, since JSON has no others.
"""

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from measure.model.text import COMMANDS

# A name can be printed on one line. Mapbench's own words quote nobody, and hold nothing that a terminal obeys.
_PRINTABLE = r"\A[^\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069]*\Z"
_OBEYED_BY_NOBODY = rf"\A[^{COMMANDS.pattern[1:]}*\Z"

Id = Annotated[str, Meta(pattern=r"\A[0-9a-f]{24}\Z")]
Name = Annotated[str, Meta(max_length=200, pattern=_PRINTABLE)]
Words = Annotated[str, Meta(max_length=20_000, pattern=_OBEYED_BY_NOBODY)]
Text = Annotated[str, Meta(max_length=20_000)]
# A function of a person's own may come as code of some MiB, with the elements in it, and stands in every script.
LongText = Annotated[str, Meta(max_length=4_000_000)]

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Seconds = Annotated[float, Meta(ge=0.0, le=1e9)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Amount = Annotated[float, Meta(ge=0.0, le=1e60)]
# Values may be as wrong as their dtype can tell.
Difference = Annotated[float, Meta(ge=0.0, le=1.7e308)]
# What has a logarithm: latencies in seconds, ratios, rates. Ends of an interval of little evidence are far apart.
Positive = Annotated[float, Meta(ge=1e-60, le=1e60)]

# Facts, options and figures, whose names no schema fixes: nested twice at most.
if TYPE_CHECKING:
    Plain = Any
else:
    _Leaf = None | bool | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | float | Text
    _Inner = _Leaf | list[_Leaf] | dict[Name, _Leaf]
    Plain = _Leaf | list[_Inner] | dict[Name, _Inner]


class Struct(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all parts of a run: immutable; change one with `msgspec.structs.replace`."""
