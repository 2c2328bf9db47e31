"""A button that copies a run's link. Streamlit has none: only code in the browser may use the clipboard."""

import streamlit as st

_HTML = """<button type="button" title="Copies a link that opens this run"><svg viewBox="0 0 24 24" aria-hidden="true"
><path d="M18 16.1c-.8 0-1.4.3-2 .8l-7.1-4.2
c.1-.2.1-.5.1-.7s0-.5-.1-.7L16 7.2c.5.5 1.2.8 2 .8a3 3 0 1 0-3-3c0 .2 0 .5.1.7L8 9.8A3 3 0 1 0 8 14.2l7.1 4.2
c-.1.2-.1.4-.1.6a3 3 0 1 0 3-2.9Z"/></svg><span>Share</span></button> <small role="status"></small>
<small class="local" hidden>The link opens on this machine only: send others <a download>the run file</a>.</small>
"""

_CSS = """
:host, div { font-family: var(--st-font); }
button {
  display: inline-flex; align-items: center; gap: .4rem; min-height: 2.5rem; padding: .25rem .75rem; cursor: pointer;
  font: inherit; font-size: .875rem; color: inherit; background: var(--st-background-color); white-space: nowrap;
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius);
}
button:hover { border-color: var(--st-primary-color); color: var(--st-primary-color); }
button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
svg { width: 1.15em; height: 1.15em; fill: currentColor; }
a { color: var(--st-link-color); }
[role=status] { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
"""

# The link is made where its address is known: a server behind a proxy does not know its own.
_JS = """
export default function ({ data, parentElement }) {
  const button = parentElement.querySelector("button");
  const word = button.querySelector("span");
  const status = parentElement.querySelector("[role=status]");
  const link = () => {
    const made = new URL(window.location.href);
    // What its maker compares with is no part of the run.
    const baseline = made.searchParams.get("baseline");
    made.search = new URLSearchParams({ run: data.run, ...(baseline && { baseline }) }).toString();
    made.hash = "";
    return made.toString();
  };
  const copy = async (text) => {
    if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    if (!copied) throw new Error("the browser does not copy");
  };
  const local = parentElement.querySelector(".local");
  local.querySelector("a").href = data.file;
  button.onclick = async () => {
    try {
      await copy(link());
      word.textContent = status.textContent = "Link copied";
    } catch {
      window.prompt("Copy this link:", link());
    }
    local.hidden = !/^(localhost|127(\\.\\d+){3}|\\[::1\\])$/.test(window.location.hostname);
    setTimeout(() => { word.textContent = "Share"; status.textContent = ""; }, 2500);
  };
}
"""

_button = st.components.v2.component("mapbench_share", html=_HTML, css=_CSS, js=_JS)


def button(run_id: str, file: str) -> None:
    """Draw the button. ``file``: the address of the run file, for those who cannot open the link."""
    _button(data={"run": run_id, "file": file}, key=f"share_{run_id}", width="content")
