"""Three sweeps to begin with: a line over the batch, one over an option, and a map."""

from urllib.parse import parse_qs

import streamlit as st

from views.choices import address
from views.ui import look

_FOUR = "loop.eager,map_fn.graph,vectorized_map.graph,batched.graph"
# The question that it answers, what is swept, and its link.
EXAMPLES = (
    (
        "Where does vectorised code overtake the loop?",
        "A line for each of four strategies, over the batch of square from 1 to 10,000. It takes about a minute.",
        f"workload=square&to=10000&strategies={_FOUR}",
    ),
    (
        "How large should a chunk be?",
        "Time and memory of chunked on outer_reduce, from one element a chunk to all 256. It takes about a minute.",
        "workload=outer_reduce&sweep=chunk&to=256&strategies=chunked.graph,map_fn.graph,vectorized_map.graph",
    ),
    (
        "Who is fastest at which batch and which size?",
        "A map of winners of outer_product: each of its 25 cells is a comparison. It takes about 90 seconds.",
        f"workload=outer_product&sweep_2=side&to=256&to_2=16&points=5&points_2=5&budget=90&strategies={_FOUR}",
    ),
)


def draw(current: address.Form) -> None:
    """Draw the cards, each with a button that makes its choices on the form; ``current`` are those that it has now."""
    st.markdown("**Sweep a size or an option, and see where the winner changes.** Choose what to sweep, or an example:")
    with st.grid(3, min_column_width=230, gap="small", border=True, key="examples") as grid:
        for number, (title, about, link) in enumerate(EXAMPLES):
            form, _ = address.read("sweep", parse_qs(link), {})
            with grid.cell(), st.container(gap="small", key=f"example_{number}"):
                st.markdown(f"**{look.plain(title)}**")
                st.caption(look.plain(about))
                is_chosen = current.items() <= form.items()
                st.button(
                    "Chosen: press Run" if is_chosen else "Choose this sweep",
                    key=f"choose_{number}", icon=":material/check:" if is_chosen else ":material/tune:",
                    disabled=is_chosen, on_click=st.session_state.update, args=(form,),
                )  # fmt: skip
