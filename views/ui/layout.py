"""The layout of Compare and Sweep as style sheets: where Run stands, and how a result of other choices looks."""

_BAR = "[data-testid=stLayoutWrapper]:has(> .st-key-run_bar)"
# The page's background under what stays in sight, and its border's colour: the theme's, as in `.streamlit/config.toml`.
_BACKGROUND, _LINE = "light-dark(#ffffff, #0f1620)", "1px solid light-dark(#d4dae3, #354256)"
_IN_SIGHT = f"position: sticky; z-index: 50; background: {_BACKGROUND};"

# The column is as high as the result beside it, and Run at its lower end: so it never leaves the page's lower edge. It
# comes first for the keyboard.
_OPEN = f"""
[data-testid=stVerticalBlock]:has(> {_BAR}) {{min-height: 100%}}
{_BAR} {{{_IN_SIGHT} bottom: 0; order: 1; margin-top: auto; padding: .5rem 0 .75rem; border-top: {_LINE}}}
"""
# Folded, the choices are one line above the result. Their fields stay, as without them their values would go.
_FOLDED = f"""
[data-testid=stLayoutWrapper]:has(> .st-key-form) {{display: none}}
{_BAR} {{{_IN_SIGHT} top: 3.75rem; padding: .25rem 0; border-bottom: {_LINE}}}
.st-key-body [class*=st-key-] {{scroll-margin-top: 7rem}}
.st-key-run_line > .st-key-fold {{min-width: 0; flex: 0 1 auto}}
.st-key-run_line > .st-key-run {{flex: none}}
.st-key-fold button {{text-align: left; height: auto}}
.st-key-fold button p {{white-space: normal}}
"""
# On a phone, which has one column as Streamlit's columns have, Run stays at the lower edge, and examples come first.
# Without a keyboard its keys are not shown.
_PHONE = f"""
@media (max-width: 640px) {{
  {_BAR} {{
    position: fixed; top: auto; bottom: 0; left: 0; right: 0; padding: .5rem 1rem;
    border-top: {_LINE}; border-bottom: 0
  }}
  [data-testid=stMainBlockContainer] {{padding-bottom: 9rem}}
  [data-testid=stColumn]:has(.st-key-examples) {{order: -1}}
}}
@media (hover: none) {{ .st-key-run kbd {{display: none}} }}
"""
# Without colour, and with the contrast that it has with it: it is still to be read.
GREY = """<style>
.st-key-body :is(canvas, svg, [data-testid=stMarkdownContainer], [data-testid=stHtml]) {filter: grayscale(1)}
.st-key-body svg {background: none !important}
</style>"""


def style(*, folded: bool) -> str:
    """Return the style sheet of a page with its choices folded to a line, or open."""
    return f"<style>{_FOLDED if folded else _OPEN}{_PHONE}</style>"
