"""Three sweeps to begin with: a line over the batch, one over an option, and a map."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

import strategies
from measure.admission import sweep_needs
from measure.run.sweep_request import SweepRequest, parse_sweep
from views.choices import address, texts
from views.choices.sweep import fields, form_of
from views.ui import look
from views.ui.memo import Memo

_memo = Memo(__name__)


@dataclass(frozen=True)
class Example:
    """``title`` is the question that it answers; ``about`` what is swept; ``name`` what its button
    chooses; ``asked`` the request, as `parse_sweep` reads it."""

    title: str
    about: str
    name: str
    asked: Mapping[str, Any]

    def request(self) -> SweepRequest:
        return parse_sweep(self.asked)


_FOUR = ("loop.eager", "map_fn.graph", "vectorized_map.graph", "batched.graph")
EXAMPLES = (
    Example(
        *texts.BATCH_EXAMPLE,
        {"workload": "square", "strategies": _FOUR, "axes": [{"name": "batch", "range": "1:10000"}]},
    ),
    Example(
        *texts.CHUNK_EXAMPLE,
        {
            "workload": "outer_reduce",
            "strategies": ("chunked.graph", "map_fn.graph", "vectorized_map.graph"),
            "axes": [{"kind": "option", "name": "chunk", "range": "1:256"}],
        },
    ),
    Example(
        *texts.MAP_EXAMPLE,
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
    st.markdown(texts.EXAMPLES_LEAD)
    with st.grid(3, min_column_width=230, gap="small", border=True, key="examples") as grid:
        for number, example in enumerate(EXAMPLES):
            with grid.cell(), st.container(gap="small", key=f"example_{number}"):
                st.markdown(f"**{look.plain(example.title)}**")
                st.caption(look.plain(example.about))
                st.caption(f":material/timer: {look.plain(needs(example))}")
                is_chosen = asked == example.request()
                st.button(
                    texts.EXAMPLE_CHOSEN if is_chosen else texts.CHOOSE_EXAMPLE.format(name=example.name),
                    key=f"choose_{number}", icon=":material/check:" if is_chosen else ":material/tune:",
                    disabled=is_chosen, on_click=_choose, args=(example,),
                )  # fmt: skip


def needs(example: Example) -> str:
    """25 cells, about 46 s and 625 MiB"""
    request = example.request()
    forecast = _memo.get((strategies.version(), example.name), lambda: sweep_needs(request))
    said = texts.MAP_NEEDS if len(request.axes) == 2 else texts.LINE_NEEDS
    time, memory = look.duration(forecast.seconds), look.size(forecast.peak_bytes)
    return said.format(count=len(request.points()), time=time, memory=memory)


def _choose(example: Example) -> None:
    # As its link would: what an example does not say is at its default.
    form, _ = address.read(address.write(form_of(example.request()), {}, fields), {}, fields)
    for key, value in form.items():
        st.session_state[key] = value
