"""The four tabs below a comparison, of which only the open one has a body: why, code, samples, details."""

import difflib
from collections.abc import Callable
from functools import partial

import pyarrow as pa
import streamlit as st

from measure.judge.findings import Findings
from measure.run.request import script_of
from measure.run.run import Run
from views.charts import names, samples
from views.result import details, why
from views.ui import guard, look
from views.ui.memo import Memo, packed

_memo = Memo(__name__)
# What earlier links call them.
_EARLIER = {"Table": "Details", "Break even": "Details", "Environment": "Details", "Memory over one call": "Why"}
_MOST_COMPARED = 1_500  # lines of two scripts: nobody reads the changes of more
_VECTORISED = "tf.vectorized_map("  # in a script: whatever name the strategy has
_NONE, _ALL = "none", "all"


def draw(result: Findings, version: int, prefix: str, *, imported: bool) -> None:
    """Draw the tabs. ``prefix`` begins the widgets' keys; ``imported``: the run comes from elsewhere, and its code from
    anybody."""
    bodies: dict[str, Callable[[Findings, int, str], None]] = {
        "Why": partial(why.draw, imported=imported),
        "Code": partial(_code, imported=imported),
        "Samples": _samples,
        "Details": details.draw,
    }
    if (earlier := st.query_params.get("tab")) in _EARLIER:
        st.query_params["tab"] = _EARLIER[earlier]
    with st.container(key=f"{prefix}tabs"):
        drawn = st.tabs(list(bodies), key="tab", on_change="rerun", bind="query-params")
        for tab, (name, body) in zip(drawn, bodies.items(), strict=True):
            if tab.open:
                with tab, guard.calm(f"the tab «{name}»"):
                    body(result, version, prefix)


def pick(label: str, slugs: list[str], key: str, *first: str) -> str:
    """Draw a list of strategies, after the words that stand ``first``, and return the one that is picked."""
    options = [*first, *slugs]
    if st.session_state.get(key) not in options:
        st.session_state[key] = options[0]
    return st.selectbox(label, options, key=key)


# --- samples ---------------------------------------------------------------------------------------------------------


def _samples(result: Findings, version: int, prefix: str) -> None:
    run = result.run
    sampled = [row for row in result.rows if row.samples]
    if not sampled:
        st.caption("No sample was taken.")
        return
    picked = pick("Strategy", [row.slug for row in sampled], "samples_of", _ALL)
    drawn = [row for row in sampled if picked in (_ALL, row.slug)]
    slugs = [row.slug for row in drawn]
    key = (run.id, version, "samples", picked)
    frame: pa.Table = _memo.get(key, lambda: packed(samples.frame(run, slugs)))
    st.html(look.legend_html([row.mapper for row in drawn], [row.mode for row in drawn], lines=False))
    count = f"{frame.num_rows:,} samples of {len(drawn)} {'strategy' if len(drawn) == 1 else 'strategies'}"
    st.vega_lite_chart(
        frame, names.sized(samples.SPEC, frame), key=f"{prefix}samples",
        alt=f"{count}, by round; a line joins the samples of one process.",
    )  # fmt: skip
    every = samples.one_in(run, slugs)
    about = [f"{count}. A point is one sample, the mean of some calls in a row; a line joins those of one process."]
    if every > 1:
        about.append(f"Of the run's samples one in {every} is drawn.")
    if run.control and run.control.strategy in slugs:
        about.append(f"The control is {look.plain(run.control.strategy)}, entered twice.")
    st.caption(" ".join(about))


# --- code ------------------------------------------------------------------------------------------------------------


def _code(result: Findings, version: int, prefix: str, *, imported: bool) -> None:
    slugs = [row.slug for row in result.rows]
    if imported:
        st.warning(
            "This code is from an imported file. It is shown as text, and nothing here has executed it: read it before "
            "you do.",
            icon=":material/upload_file:",
        )
    else:
        st.caption("Whole scripts: they run with TensorFlow and NumPy alone, and are the code that was measured.")
    if not slugs:
        st.caption("The run has no strategy.")
        return
    left, right = st.columns(2)
    with left:
        shown = pick("Script of", slugs, "code_of")
    with right:
        other = pick("Compared with", [slug for slug in slugs if slug != shown], "code_against", _NONE)
    sources = [_source(result.run, slug, imported=imported) for slug in (shown, other) if slug != _NONE]
    if any(_VECTORISED in source for source in sources):
        st.caption(
            ":material/info: `tf.vectorized_map` maps many elements at once: `tf.print` and assertions in the function "
            "run for only one of them, without a warning."
        )
    if len(sources) == 1:
        st.code(sources[0], line_numbers=True)
        return
    one, two = (source.splitlines()[:_MOST_COMPARED] for source in sources)
    changes = difflib.unified_diff(one, two, shown, other, lineterm="")
    st.code("\n".join(changes) or "They are the same.", language="diff")
    st.caption(f"Both scripts, to copy: first {look.plain(shown)}, then {look.plain(other)}.")
    for source in sources:
        st.code(source, height=220)


def _source(run: Run, slug: str, *, imported: bool) -> str:
    """Return the script that ran; one put together anew where a run of this machine does not hold it."""
    code = run.measurement(slug).code
    if code is not None:
        return code.source
    if imported:
        return "# The file does not hold the script of this strategy.\n"
    try:
        return script_of(run.request, slug)
    except (KeyError, ValueError) as error:
        return f"# The script of this strategy is not known: {error}\n"
