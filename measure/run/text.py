"""Numbers as people read them, on the command line, in sentences and on the page: three significant digits, always with
a unit. Outcomes and strategies by their names."""

import math
import re
from collections.abc import Sequence
from decimal import Decimal

# Outcomes that have other words than their own.
_OUTCOMES = {"unsupported": "not supported", "timeout": "timed out", "not_run": "not timed"}
# Signs that a terminal takes for a command, or that turn the direction of the text around them.
COMMANDS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# In place of a value that is not known.
MISSING = "–"
# Of an interval that reaches over a tenth of a figure, the third digit says nothing.
_COARSE = 1.1
_NEAR_ONE = 2.0
# A mode's shape in text.
GLYPHS = {"eager": "●", "graph": "■", "xla": "◆"}


def glyph(mode: str) -> str:
    """The shape of a mode, also of one that is not known."""
    return GLYPHS.get(mode, "▲")


def label(slug: str, mode: str) -> str:
    """A strategy's name with the shape of its mode, as plain text: ``■ map_fn.graph``."""
    return f"{glyph(mode)} {slug}"


def outcome(word: str, reason: str = "") -> str:
    """An outcome in a few words, with its reason where there is one: ``out of memory: it needs 4.00 GiB``."""
    words = _OUTCOMES.get(word, word.replace("_", " "))
    return reason if reason.startswith(words) else ": ".join(filter(None, (words, reason)))


def counted(count: int, noun: str, plural: str = "") -> str:
    """``1 op``, ``1,005 ops``."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def number(value: float, digits: int = 3) -> str:
    """So many significant digits, without an exponent: ``1.42``, ``37.0``, ``1,420``."""
    if not math.isfinite(value):
        return MISSING
    if value == 0 or abs(value) >= 999.5:
        return f"{value:,.0f}"
    return f"{Decimal(f'{value:.{digits - 1}e}'):f}"


def digits(low: float, high: float) -> int:
    """The significant digits that an interval carries: two where a twentieth of the figure is not sure, else three."""
    return 2 if high > _COARSE * low else 3


def seconds(value_s: float | None, digits: int = 3) -> str:
    """``412 ns``, ``16.2 µs``, ``1.42 ms``, ``3.10 s``, ``2.50 min``."""
    if value_s is None or not math.isfinite(value_s):
        return MISSING
    scale, unit = _unit(float(f"{value_s:.{digits - 1}e}"))
    return f"{number(value_s * scale, digits)} {unit}"


def _unit(value_s: float) -> tuple[float, str]:
    """The unit in which a finite number of seconds is written, and how many of it are a second."""
    for most_s, scale, unit in ((999.5e-9, 1e9, "ns"), (999.5e-6, 1e6, "µs"), (0.9995, 1e3, "ms"), (119.5, 1.0, "s")):
        if value_s < most_s:
            return scale, unit
    return 1 / 60, "min"


def seconds_with_interval(value_s: float, low_s: float, high_s: float) -> str:
    """``1.42 ms [1.38, 1.47]``: all in the unit of the value, with the digits that the interval carries."""
    (scale, _), carried = _unit(value_s), digits(low_s, high_s)
    return f"{seconds(value_s, carried)} [{number(low_s * scale, carried)}, {number(high_s * scale, carried)}]"


def span_of_seconds(low_s: float, high_s: float) -> str:
    """``1.42 to 1.51 ms``, ``980 µs to 1.02 ms``, or one figure where both read alike."""
    low, high = seconds(low_s), seconds(high_s)
    if low == high:
        return low
    (scale, unit), (_, unit_of_high) = _unit(low_s), _unit(high_s)
    return f"{number(low_s * scale) if unit == unit_of_high else low} to {high}"


def size(value_bytes: float | None) -> str:
    """``512 B``, ``4.69 MiB``, ``1.20 GiB``."""
    if value_bytes is None or not math.isfinite(value_bytes):
        return MISSING
    unit = "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value_bytes < 1024:
            break
        value_bytes, unit = value_bytes / 1024, larger
    # One decimal up to 1023.9, so that 100 MiB reads ``100.0``; two where that would show too little.
    decimals = 0 if unit == "B" else 1 if value_bytes >= 10 else 2
    return f"{value_bytes:.{decimals}f} {unit}"


def factor(value: float | None) -> str:
    """``1.03×``, ``37×``."""
    return MISSING if value is None or not math.isfinite(value) else f"{times(value)}×"


def times(value: float) -> str:
    """A `factor` without its sign, where others stand beside it: ``1.03``, ``37``."""
    if not math.isfinite(value):
        return MISSING
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def factor_with_interval(value: float, low: float, high: float) -> tuple[str, str]:
    """``13.2×`` and ``12.9–13.5``: with the digits that the interval carries; near 1, what is beyond it counts."""
    carried = 3 if 1 / _NEAR_ONE < value < _NEAR_ONE else digits(low, high)
    return f"{number(value, carried)}×", f"{number(low, carried)}–{number(high, carried)}"


def shortened(words: str, most: int) -> str:
    """``words``, cut between two of them where they have more than ``most`` signs."""
    return words if len(words) <= most else f"{words[:most].rsplit(' ', 1)[0].rstrip(',')} …"


def sentence(words: str) -> str:
    """``words`` with a capital letter, where they do not begin with a name such as ``map_fn.graph`` or ``batch=3``, and
    a full stop."""
    if not re.match(r"\w*([_.]\w|=)", words):
        words = words[:1].upper() + words[1:]
    return words if words.endswith((".", "…")) else f"{words}."


def standing(status: str, reason: str) -> str:
    """``interrupted: the host ended``; the reason alone where it says the status itself: ``cancelled by a person``."""
    return reason if reason.startswith(status) else ": ".join(filter(None, (status, reason)))


def listed(names: Sequence[str], most: int | None = None, word: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``; of more than ``most`` the rest is counted: ``a, b, c and 2 more``."""
    shown = list(names)
    if most is not None and len(shown) > most:
        shown[most:] = [f"{len(shown) - most} more"]
    return f" {word} ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))


def percent(share: float) -> str:
    """``2.1%``, ``12%``."""
    return f"{100 * share:.1f}%" if share < 0.1 else f"{100 * share:.0f}%"


def within(share: float) -> str:
    """``4%``: a difference, rounded up."""
    return f"{math.ceil(100 * share - 1e-9)}%"
