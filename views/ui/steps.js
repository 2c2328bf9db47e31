// Streamlit adds a step to the browser's history whenever the server changes the address. Only code in the browser can
// tell it to replace one, or scroll to the top, from which a result, an example and unfolded choices are shown, or to the
// tab that is opened.
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
  addEventListener("click", ({target}) => {
    if (target.closest(".st-key-fold, .st-key-example_cards button, .st-key-examples_back")) toTop();
    target.closest("[role=tab]")?.closest("[role=tablist]").scrollIntoView({behavior: "smooth"});
  }, true);
}
