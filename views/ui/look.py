"""Colours, shapes and numbers as pages show them: colour is of the mapper, shape of the mode, and units never lack."""

import html
import re
import zlib
from collections.abc import Iterable, Sequence

from measure.run.text import (
    GLYPHS,
    MISSING,
    OUTCOMES,
    factor,
    factor_with_interval,
    glyph,
    interval_of_seconds,
    label,
    number,
    percent,
    seconds,
    seconds_with_interval,
    shortened,
    size,
)

__all__ = [
    "GLYPHS",
    "MISSING",
    "OUTCOMES",
    "factor",
    "factor_with_interval",
    "glyph",
    "interval_of_seconds",
    "label",
    "number",
    "percent",
    "seconds",
    "seconds_with_interval",
    "shortened",
    "size",
]

# Fixed for each mapper, on every page and whatever is selected. Found by a search for the largest least distance in
# OKLab (×100) among people with normal, protan, deutan and tritan sight: any two of a default selection differ by at
# least 9.2, any two that a workload offers by 7.5, and any two at all by 6 (rewrites that no workload has both of).
# A mapper has one hue in light and in dark; none is red, which is an error's, and none nearly black or white. All have
# a contrast of 3 with the background (WCAG's bound for graphics). A test simulates it. So many colours are hard to
# name: what is drawn has its name beside it.
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
_PALETTE = _COLOURS | {f"further {number}": colours for number, colours in enumerate(_FURTHER)}

# A dot, a square and a diamond: drawn here, because an icon of Streamlit's would be fetched from the network.
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="32" height="32" viewBox="0 0 32 32">'
    '<circle cx="8" cy="24" r="5.5" fill="#a35c01"/><rect x="11" y="10" width="10" height="10" fill="#2894fb"/>'
    '<path d="M24 1.5L30.5 8L24 14.5L17.5 8Z" fill="#008871"/></svg>'
)
LOGO = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="164" height="32" viewBox="0 0 164 32">'
    f'{ICON[ICON.index("<circle") : -6]}<text x="38" y="23" font-family="Arial, Helvetica, sans-serif" '
    'font-size="21" font-weight="600" textLength="110" lengthAdjust="spacingAndGlyphs" fill="#3f7fd0">Mapbench</text>'
    "</svg>"
)

COLOUR_NAMES = tuple(_PALETTE)
LIGHT = tuple(light for light, _ in _PALETTE.values())
DARK = tuple(dark for _, dark in _PALETTE.values())

# A mode's shape: as a mark in charts of points, and as a dash in charts of lines.
MODES = ("eager", "graph", "xla")
SHAPES = ("circle", "square", "diamond")
DASHES = ([2, 2], [7, 3], [1, 0])


def colour_name(mapper: str) -> str:
    """Return the mapper's name in the colour scale."""
    return mapper if mapper in _COLOURS else f"further {zlib.crc32(mapper.encode()) % len(_FURTHER)}"


def css_colour(mapper: str) -> str:
    """The mapper's colour for a style sheet; it follows the theme without a rerun."""
    light, dark = _PALETTE[colour_name(mapper)]
    return f"light-dark({light}, {dark})"


def strategy_html(slug: str, mapper: str, mode: str) -> str:
    """A strategy's name with its shape in its colour, as HTML."""
    return (
        f'<span style="white-space:nowrap"><span style="color:{css_colour(mapper)}" aria-hidden="true">'
        f"{glyph(mode)}</span> {html.escape(slug)}</span>"
    )


_LINES = {"eager": "dotted", "graph": "dashed", "xla": "solid"}


def legend_html(mappers: Iterable[str], modes: Iterable[str], *, lines: bool) -> str:
    """Return the legend of mappers' colours and of modes' dashes (``lines``) or shapes; it wraps on narrow screens."""
    known = [name for name in COLOUR_NAMES if name in set(mappers)]
    others = sorted(set(mappers) - set(known))
    parts = [
        f'<span style="white-space:nowrap"><span style="display:inline-block;width:1.1em;height:.6em;border-radius:2px;'
        f'background:{css_colour(mapper)}"></span> '
        f"{html.escape(mapper)}</span>"
        for mapper in (*known, *others)
    ]
    for mode in (mode for mode in MODES if mode in set(modes)):
        sign = (
            f'<span style="display:inline-block;width:1.8em;border-top:2px {_LINES[mode]} currentColor;'
            'vertical-align:middle"></span>'
            if lines
            else glyph(mode)
        )
        parts.append(f'<span style="white-space:nowrap;opacity:.8">{sign} {mode}</span>')
    return f'<div style="display:flex;flex-wrap:wrap;gap:.1rem 1.1rem;font-size:.88rem">{"".join(parts)}</div>'


_KEY = re.compile(r"[^A-Za-z0-9_]")


def key(*parts: str) -> str:
    """Return a widget key, and so a CSS class, from names."""
    return _KEY.sub("-", "_".join(parts))


def style(mappers: Iterable[str]) -> str:
    """Return the page's style sheet: the grid of strategies shows each mapper's colour, and is as dense as a table."""
    rules = [
        ".st-key-strategies_grid {row-gap: 0.1rem}",
        ".st-key-strategies_grid [class*=st-key-cell_] {align-self: center}",
        # White on the dark theme's blue, which is for text on dark, would have a contrast of 2.9.
        "[data-testid=stBaseButton-primary]:enabled {color: light-dark(#ffffff, #0b1420)}",
        "[data-testid=stCaptionContainer] code {color: inherit; background: none; padding: 0}",
        # A caption is pale as a whole: its words are to be, and not a badge in it, whose contrast would be 2.8.
        "[data-testid=stCaptionContainer]:has(.stMarkdownBadge) {opacity: 1}",
        "[data-testid=stCaptionContainer]:has(.stMarkdownBadge) p "
        "{color: color-mix(in srgb, currentColor 70%, transparent)}",
        # Streamlit's own colours of code have a contrast of 3.6 to 4.3 with its background.
        "[data-testid=stCode] .token:is(.keyword, .function) {color: light-dark(#1459ab, #74b3f8) !important}",
        "[data-testid=stCode] .token.comment {color: light-dark(#5d6472, #9da6b5) !important}",
        ".st-key-strategies_grid button {min-height: 1.7rem; padding-top: 0; padding-bottom: 0}",
    ]
    for mapper in mappers:
        rules.append(
            f".st-key-{key('row', mapper)} button p::before "
            f'{{content: "▌"; color: {css_colour(mapper)}; margin-right: 0.3em}}'
        )
    return f"<style>{' '.join(rules)}</style>"


# Markdown's own signs, and Streamlit's: `$` for formulas, `:` for colours, icons and emoji.
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|~$<>&=^@/])")
_DIRECTIVE = re.compile(r":(?=[\w+\-])")
_WORD_JOINER = "\u2060"  # invisible; between ':' and a word it keeps Streamlit from seeing an icon or an emoji
_BREAKS = re.compile(r"[^\S\u00a0]+")
_CODE = re.compile(r"`([^`]*)`")


def plain(text: object) -> str:
    """Return ``text`` escaped for Markdown, so that it is shown as it is, as one paragraph; spaces at which no line may
    break stay."""
    return _escaped(str(text)).strip()


def _escaped(text: str) -> str:
    return _DIRECTIVE.sub(rf":{_WORD_JOINER}", _MARKDOWN.sub(r"\\\1", _BREAKS.sub(" ", text)))


def code_html(text: str) -> str:
    """Return ``text`` as HTML, with the parts in backticks as code; nothing else in it has a meaning."""
    return _CODE.sub(r'<code style="font-size:.9em">\1</code>', html.escape(text))


def _parts(text: str, names: Sequence[str]) -> list[str]:
    """Split ``text`` at the names of strategies: every second part is one."""
    longest_first = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True) if "`" not in name)
    return re.split(rf"(?<![\w.])({longest_first})(?![\w?=]|\.\w)", text) if longest_first else [text]


def named(text: str, names: Sequence[str]) -> str:
    """Return ``text`` as Markdown, with the ``names`` of strategies in code font; nothing else in it has a meaning."""
    parts = _parts(text, names)
    return "".join(f"`{part}`" if place % 2 else _escaped(part) for place, part in enumerate(parts))


def named_html(text: str, names: Sequence[str]) -> str:
    """The same as HTML."""
    parts = map(html.escape, _parts(text, names))
    return "".join(
        f'<code style="font-size:.92em">{part}</code>' if place % 2 else part for place, part in enumerate(parts)
    )


def sentence(text: str) -> str:
    """Return ``text`` with a capital letter and a full stop."""
    text = text[:1].upper() + text[1:]
    return text if text.endswith(".") else f"{text}."


def duration(value_s: float | None) -> str:
    """A time to wait or that has passed, coarse: under 1 s, 6 s, 1 min 5 s, 5 min, 2 h 5 min."""
    if value_s is None:
        return MISSING
    if value_s < 1:
        return "under 1 s"
    whole = round(value_s)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def error_size(value: float | None) -> str:
    """An error without a unit: 0, 1.2e-07, 0.53."""
    if value is None:
        return MISSING
    return "0" if value == 0 else f"{value:.2g}"
