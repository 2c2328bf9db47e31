"""Steps in the browser's history: one for each run and page that a person opens, and none for a changed choice.

Streamlit adds a step whenever the server changes the address. Only code in the browser can tell it to replace one, or
scroll to the top, from which a result is shown, and the choices that are unfolded.
"""

import streamlit as st

# What is no choice of a request stays with another run.
_KEPT = ("run", "baseline", "tab")

_JS = """
export default function () {
  if (window.mapbenchSteps) return;
  window.mapbenchSteps = true;
  // What a person does may begin a step; whatever the server then adds until the next thing done belongs to it.
  let begun = false;
  for (const kind of ["pointerdown", "keydown"]) addEventListener(kind, () => { begun = true; }, true);
  addEventListener("popstate", () => { begun = false; }, true);
  const place = address => address.pathname + " " + (address.searchParams.get("run") ?? "");
  const toTop = () => document.querySelector("[data-testid=stMain]")?.scrollTo(0, 0);
  const push = history.pushState.bind(history);
  history.pushState = (state, unused, url) => {
    const from = new URL(location.href);
    const to = new URL(url, from);
    if (!begun || place(from) === place(to)) return history.replaceState(state, unused, url);
    begun = false;
    push(state, unused, url);
    toTop();
  };
  addEventListener("click", event => { if (event.target.closest(".st-key-fold")) toTop(); });
}
"""

_component = st.components.v2.component("mapbench_steps", html="<span></span>", js=_JS)


def draw() -> None:
    """Have the browser count steps like this from now on."""
    _component(key="steps", width="content")


def to_run(run_id: str) -> None:
    """Show another run, with its own choices."""
    if "run" in st.query_params:
        # The step that is left is that run with its choices: those that were changed since are the next one's.
        for name in [name for name in st.query_params if name not in _KEPT]:
            del st.query_params[name]
    st.query_params["run"] = run_id
