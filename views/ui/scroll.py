"""Scrolling to a part of the page. Only code in the browser can do that: Streamlit has no call for it."""

import streamlit as st

_JS = """
export default function ({ data }) {
  // Once for each jump: a component runs again with every change of the page.
  if (window.__mapbenchJump === data.jump) return;
  window.__mapbenchJump = data.jump;
  document.querySelector(`.st-key-${data.key}`)?.scrollIntoView({ block: "start" });
}
"""

_jump = st.components.v2.component("mapbench_scroll", html="<span></span>", js=_JS)
_JUMP, _COUNT = "jump_to", "jumps"


def ask(key: str) -> None:
    """Have the page show the container with this key at its top when it is next drawn."""
    st.session_state[_JUMP] = key
    st.session_state[_COUNT] = st.session_state.get(_COUNT, 0) + 1


def follow(key: str) -> None:
    """Scroll to a container, if that was asked for. Drawn after it."""
    if st.session_state.get(_JUMP) == key:
        _jump(data={"key": key, "jump": st.session_state[_COUNT]}, key=f"scroll_{key}", height="content")
