"""Three sweeps to begin with: a line over the batch, one over an option, and a map."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

import strategies
from measure.admission import sweep_needs
from measure.run.sweep_request import SweepRequest, parse_sweep
from views.choices import address
from views.choices.sweep import fields, form_of
from views.ui import look
from views.ui.memo import Memo

_memo = Memo(__name__)
_FOUR = ("loop.eager", "map_fn.graph", "vectorized_map.graph", "batched.graph")


@dataclass(frozen=True)
class Example:
    """``title`` is the question that it answers; ``about`` what is swept; ``asked`` the request, as `parse_sweep` reads
    it."""

    title: str
    about: str
    asked: Mapping[str, Any]

    def request(self) -> SweepRequest:
        return parse_sweep(self.asked)


EXAMPLES = (
    Example(
        "Where does vectorised code overtake the loop?",
        "A line for each of four strategies, over the batch of square from 1 to 10,000.",
        {"workload": "square", "strategies": _FOUR, "axes": [{"name": "batch", "range": "1:10000"}]},
    ),
    Example(
        "How large should a chunk be?",
        "Time and memory of chunked on outer_reduce, from one element a chunk to all 256.",
        {
            "workload": "outer_reduce",
            "strategies": ("chunked.graph", "map_fn.graph", "vectorized_map.graph"),
            "axes": [{"kind": "option", "name": "chunk", "range": "1:256"}],
        },
    ),
    Example(
        "Who is fastest at which batch and which size?",
        "A map of winners of outer_product: each of its cells is a comparison.",
        {
            "workload": "outer_product",
            "strategies": _FOUR,
            "axes": [{"name": "batch", "range": "1:256"}, {"name": "side", "range": "1:16"}],
            "budget_s": 90,
        },
    ),
)


def draw(asked: SweepRequest | None) -> None:
    """Draw the cards; each has its forecast, and a button that makes its choices on the form. ``asked``: what the form
    asks for."""
    st.markdown("**Sweep a size or an option, and see where the winner changes.** Choose what to sweep, or an example:")
    with st.grid(3, min_column_width=230, gap="small", border=True, key="examples") as grid:
        for number, example in enumerate(EXAMPLES):
            with grid.cell(), st.container(gap="small", key=f"example_{number}"):
                st.markdown(f"**{look.plain(example.title)}**")
                st.caption(look.plain(example.about))
                st.caption(f":material/timer: {look.plain(needs(example))}")
                is_chosen = asked == example.request()
                st.button(
                    "Chosen: press Run" if is_chosen else "Choose this sweep",
                    key=f"choose_{number}", icon=":material/check:" if is_chosen else ":material/tune:",
                    disabled=is_chosen, on_click=_choose, args=(example,),
                )  # fmt: skip


def needs(example: Example) -> str:
    """25 cells, about 46 s and 625 MiB"""
    request = example.request()
    forecast = _memo.get((strategies.version(), example.title), lambda: sweep_needs(request))
    parts = "cells" if len(request.axes) == 2 else "points"
    time, memory = look.duration(forecast.seconds), look.size(forecast.peak_bytes)
    return f"{len(request.points())} {parts}, about {time} and {memory}"


def _choose(example: Example) -> None:
    # As its link would: what an example does not say is at its default.
    form, _ = address.read(address.write(form_of(example.request()), {}, fields), {}, fields)
    for key, value in form.items():
        st.session_state[key] = value
