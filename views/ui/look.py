"""Colours, shapes and texts as pages show them: colour is of the mapper, shape of the mode, and units never lack."""

import functools
import html
import re
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

# Pages write numbers as the command line does.
from measure.run.text import (  # noqa: F401
    GLYPHS,
    MISSING,
    factor,
    factor_with_interval,
    glyph,
    label,
    number,
    percent,
    seconds,
    seconds_with_interval,
    sentence,
    shortened,
    size,
)

# Fixed for each mapper, on every page and whatever is selected. Found by a search for the largest least distance in
# OKLab (×100) among people with normal, protan, deutan and tritan sight: any two of a default selection differ by at
# least 9.2, any two that a workload offers by 7.5, and any two at all by 6 (rewrites that no workload has both of).
# A mapper has one hue in light and in dark; none is red, which is an error's, and none nearly black or white. All have
# a contrast of 3 with the background (WCAG's bound for graphics). A test simulates it.
_COLOURS: dict[str, tuple[str, str]] = {
    "batched": ("#17a687", "#7adeb9"),
    "vectorized_map": ("#3d79b6", "#4797cc"),
    "map_fn": ("#8d4900", "#fb922b"),
    "loop": ("#5a615a", "#9faa9f"),
    "chunked": ("#8b00ca", "#9202fe"),
    "accumulate": ("#670068", "#b80eab"),
    "jacobian": ("#10483b", "#198561"),
    "tape_batch_jacobian": ("#9585ec", "#c8bdfd"),
    "recompute": ("#451299", "#5d5cbb"),
    "ragged": ("#bf6006", "#ad5e20"),
    "loop_compiled": ("#a857ff", "#c980fe"),
    "while_loop": ("#5e11fd", "#8f6dfd"),
    "autograph": ("#c48800", "#febf16"),
    "dataset": ("#66406e", "#917598"),
    "dataset_batched": ("#6d8357", "#baf2a1"),
    "numpy_function": ("#97588a", "#954982"),
    "numpy": ("#543600", "#b6874a"),
    "numpy_batched": ("#e21cb6", "#fa4dcd"),
}
# Any other mapper has one of these, which its name decides: a new one needs nothing here. They differ from each other
# and from those above by at least 5.2. Two new mappers may share one, and their names tell them apart.
_FURTHER = (
    ("#8251df", "#c0a4fd"),
    ("#5d36a4", "#7c60da"),
    ("#99728d", "#d6a3d3"),
    ("#31583d", "#689176"),
    ("#a1935c", "#ded073"),
    ("#4c754a", "#8dc490"),
)
_PALETTE = _COLOURS | {f"further {place}": colours for place, colours in enumerate(_FURTHER)}

# Of a sentence on a page: ours are shorter, but for one that quotes an error.
MOST_SIGNS = 600

_HERE = Path(__file__).parent
# A dot, a square and a diamond: drawn here, because an icon of Streamlit's would be fetched from the network.
ICON, LOGO = ((_HERE / name).read_text("utf-8").strip() for name in ("icon.svg", "logo.svg"))

COLOUR_NAMES = tuple(_PALETTE)
LIGHT = tuple(light for light, _ in _PALETTE.values())
DARK = tuple(dark for _, dark in _PALETTE.values())

# A mode's shape: as a mark in charts of points, and as a dash in charts of lines.
MODES = ("eager", "graph", "xla")
SHAPES = ("circle", "square", "diamond")
DASHES = ([2, 2], [7, 3], [1, 0])


def colour_name(mapper: str) -> str:
    return mapper if mapper in _COLOURS else f"further {zlib.crc32(mapper.encode()) % len(_FURTHER)}"


def css_colour(mapper: str) -> str:
    """The mapper's colour for a style sheet; it follows the theme without a rerun."""
    light, dark = _PALETTE[colour_name(mapper)]
    return f"light-dark({light}, {dark})"


def strategy_html(slug: str, mapper: str, mode: str) -> str:
    return (
        f'<span style="overflow-wrap:anywhere"><span style="color:{css_colour(mapper)}" aria-hidden="true">'
        f"{glyph(mode)}</span>&nbsp;{_CODE.format(html.escape(slug))}</span>"
    )


def legend_html(mappers: Iterable[str], modes: Iterable[str], *, lines: bool) -> str:
    """Return the legend of mappers' colours and of modes' dashes (``lines``) or shapes; it wraps on narrow screens."""
    drawn = set(mappers)
    block, line = "display:inline-block;width:1.1em;height:.6em;border-radius:2px", "display:inline-block;width:1.8em"
    items = [
        f'<span style="{block};background:{css_colour(mapper)}"></span> {html.escape(mapper)}'
        for mapper in (*(name for name in _COLOURS if name in drawn), *sorted(drawn - set(_COLOURS)))
    ]
    for mode, dash in zip(MODES, ("dotted", "dashed", "solid"), strict=True):
        if mode in set(modes):
            dashed = f'<span style="{line};border-top:2px {dash} currentColor;vertical-align:middle"></span>'
            items.append(f"{dashed if lines else glyph(mode)} {mode}")
    wrapped = "".join(f'<span style="white-space:nowrap">{item}</span>' for item in items)
    return f'<div style="display:flex;flex-wrap:wrap;gap:.1rem 1.1rem;font-size:.88rem">{wrapped}</div>'


def key(*parts: str) -> str:
    """Return a widget key, and so a CSS class, from names."""
    return re.sub("[^A-Za-z0-9_]", "-", "_".join(parts))


@functools.cache
def sheet(name: str) -> str:
    return f"<style>{(_HERE / f'{name}.css').read_text('utf-8')}</style>"


def style(mappers: Iterable[str], *sheets: str) -> str:
    """Return the style sheets of a page: `page.css`, others of this folder, and the colours of mappers in the grid."""
    mark = '.st-key-{} button p::before {{content: "▌"; margin-right: .3em; color: {}}}'
    marks = " ".join(mark.format(key("row", mapper), css_colour(mapper)) for mapper in mappers)
    return "".join(map(sheet, ("page", *sheets))) + f"<style>{marks}</style>"


# --- texts -----------------------------------------------------------------------------------------------------------

# Markdown's own signs, and Streamlit's: `$` for formulas, `:` for colours, icons and emoji.
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|~$<>&=^@/])")
# An icon, a colour or an emoji; and what is made a link however it is escaped: an address, or one of mail.
_DIRECTIVE = re.compile(r":(?=[\w+\-]|//)|www(?=\.)|@(?=\w)", re.IGNORECASE)
_WORD_JOINER = "\u2060"  # invisible; after such a beginning it keeps it from being one
_BREAKS = re.compile(r"[^\S\u00a0]+")
_CODE = '<code style="font-size:.92em">{}</code>'
# Signs of a text times those of the names in it: more are compared for no file, however many of both it has.
_MOST_COMPARED = 2_000_000


def plain(text: object) -> str:
    """Return ``text`` escaped for Markdown, as one paragraph; spaces at which no line may break stay."""
    return _escaped(str(text)).strip()


def _escaped(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", _DIRECTIVE.sub(rf"\g<0>{_WORD_JOINER}", _BREAKS.sub(" ", text)))


def code_html(text: str) -> str:
    """Return ``text`` as HTML, with the parts in backticks as code; nothing else in it has a meaning."""
    return re.sub("`([^`]*)`", lambda match: _CODE.format(match[1]), html.escape(text))


def _parts(text: str, names: Sequence[str]) -> list[str]:
    """Split ``text`` at the names of strategies: every second part is one. A text with too many is not split."""
    here = {name for name in names if name in text and "`" not in name}  # a file may have a thousand of both
    if len(text) * sum(map(len, here)) > _MOST_COMPARED:
        return [text]
    longest_first = "|".join(re.escape(name) for name in sorted(here, key=len, reverse=True))
    return re.split(rf"(?<![\w.])({longest_first})(?![\w?=]|\.\w)", text) if longest_first else [text]


def named(text: str, names: Sequence[str]) -> str:
    """Return ``text`` as Markdown, with the ``names`` of strategies in code font; nothing else in it has a meaning."""
    parts = _parts(text, names)
    return "".join(f"`{part}`" if place % 2 else _escaped(part) for place, part in enumerate(parts))


def named_html(text: str, names: Sequence[str]) -> str:
    """The same as HTML."""
    parts = map(html.escape, _parts(text, names))
    return "".join(_CODE.format(part) if place % 2 else part for place, part in enumerate(parts))


def duration(value_s: float | None) -> str:
    """A time to wait or that has passed, coarse: under 1 s, 6 s, 1 min 5 s, 5 min, 2 h, 2 h 5 min."""
    if value_s is None:
        return MISSING
    if value_s < 1:
        return "under 1 s"
    minutes, whole_s = divmod(round(value_s), 60)
    if minutes < 60:
        return " ".join([f"{minutes} min"] * bool(minutes) + [f"{whole_s} s"] * bool(whole_s))
    return " ".join([f"{minutes // 60} h"] + [f"{minutes % 60} min"] * bool(minutes % 60))
