"""The first visit: six runs that were measured before, as cards, and the one of them that is opened.

``python -m tests.benchmarks.examples`` measures them anew.
"""

import functools
import html
import math
from pathlib import Path

import streamlit as st

from measure.claims import known
from measure.judge import answer
from measure.judge.findings import Findings, findings
from measure.judge.verdict import verdict
from measure.machine import environment
from measure.run.encoding import decode
from measure.run.run import Run
from views.choices import address
from views.result import actions, claims, heading
from views.ui import look
from workloads import places

FOLDER = Path(__file__).parents[1] / "examples"
# In the order of the cards: the seeds' three, a gradient, one that memory decides, and a claim.
NAMES = ("image_sqrt", "outer_product", "per_example_gradients", "batch_jacobian", "outer_reduce", "claim")
OPENED = "example"
# Of a thumbnail: the most rows, and pixels from one to the next.
_MOST_ROWS, _ROW = 8, 8


@functools.cache
def run_of(name: str) -> Run:
    """The run of an example; read once, since a file does not change."""
    return decode((FOLDER / f"{name}.json").read_bytes())


@functools.cache
def card(name: str) -> str:
    """What a card shows, as HTML: the case, a picture of the latencies, the line that answers, machine and date."""
    run = run_of(name)
    if run.kind == "claims":
        item = _claim(run)
        case, drawn = look.code_html(item.claim.sentence), "<br>"
        words = claims.words_html(item.verdict.sentence if item.verdict else "", item.claim)
        words = f"<b>{item.word}</b>: {words}"
    else:
        of = findings(run)
        line = verdict(of).partition(". ")[0].rstrip(".")
        if beyond := [row.slug for row in of.rows if row.outcome == "out_of_memory"]:
            line += f". Out of memory: {', '.join(beyond)}"
        case, drawn = html.escape(answer.heading(run)), _picture(of)
        words = look.named_html(f"{line}.", [row.slug for row in of.rows])
    about = html.escape(f"{environment.machine(run.environment)}, {run.created[:10]}")
    return (
        f'<div style="overflow-wrap:anywhere"><b>{case}</b>{drawn}<div style="font-size:.92rem">{words}</div>'
        f'<div style="font-size:.8rem;opacity:.75;margin-top:.3rem">{about}</div></div>'
    )


def form() -> address.Form:
    """Return the choices of the open example; empty if it is a claim, or none is open."""
    name = st.session_state.get(OPENED)
    return address.of_run(run_of(name)) if name in NAMES else {}


def draw() -> None:
    """Draw the cards, or the example that was opened."""
    with st.container(key="examples"):
        if (name := st.session_state.get(OPENED)) in NAMES:
            _draw_one(run_of(name))
            return
        anew = "" if places.viewer() else " Choose what you have, and press Run to measure it here."
        st.markdown(f"**Examples, measured before.**{anew}")
        with st.grid(3, min_column_width=230, gap="small", border=True, key="example_cards") as grid:
            for name in NAMES:
                with grid.cell(), st.container(gap="small", height="stretch", key=f"example_{name}"):
                    st.html(card(name))
                    st.button("Open", key=f"open_{name}", icon=":material/open_in_new:", on_click=_open, args=(name,),
                              type="tertiary")  # fmt: skip


def _draw_one(run: Run) -> None:
    st.button("All examples", key="examples_back", type="tertiary", icon=":material/arrow_back:", on_click=_open)
    st.markdown(f"**An example, measured before.** {actions.origin(run)}.")
    if run.kind == "claims":
        if not places.viewer():
            st.caption("Run does not measure this claim: try it under Claims.")
        claims.draw_claim(_claim(run), imported=False)
        return
    from views.result.compare import draw_comparison  # loading Altair and pandas takes a moment

    heading.title(run)
    draw_comparison(run, 0, finished=True, baseline=None, prefix="example_")


def _open(name: str | None = None) -> None:
    st.session_state[OPENED] = name
    st.session_state.update(form() or address.read("compare", {}, {})[0])


def _claim(run: Run) -> claims.Tried:
    return next(claims.judged(claim, run) for claim in known.all_claims() if claim.id in (run.claims or ()))


def _picture(of: Findings) -> str:
    """The latencies of the fastest on a logarithmic axis: of each the shape of its mode in the colour of its mapper."""
    timed = [(row, math.log(row.median_s)) for row in of.ranked if row.median_s][:_MOST_ROWS]
    if len(timed) < 2:
        return ""
    low, span = timed[0][1], (timed[-1][1] - timed[0][1]) or 1.0
    marks = "".join(
        f'<span style="position:absolute;line-height:1;font-size:.9rem;left:{95 * (log - low) / span:.0f}%;'
        f'top:{place * _ROW}px;color:{look.css_colour(row.mapper)}">{look.glyph(row.mode)}</span>'
        for place, (row, log) in enumerate(timed)
    )
    height = len(timed) * _ROW + 8
    return f'<div aria-hidden="true" style="position:relative;height:{height}px;margin:.4rem 0">{marks}</div>'
