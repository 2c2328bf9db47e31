// A part of the bundle that has `vegaEmbed`.
for (const data of document.querySelectorAll("script.drawn")) {
  // Expressions are interpreted: the page's policy lets none be compiled.
  vegaEmbed(data.previousElementSibling, JSON.parse(data.textContent), {
    ast: true, renderer: "svg", actions: false, defaultStyle: false, tooltip: { disableDefaultStyle: true },
    logLevel: 1, // errors
  }).then(({ view }) => view.container().setAttribute("role", "img")); // its hundreds of marks are not read out one by one
}
for (const button of document.querySelectorAll(".code > button")) {
  button.hidden = !navigator.clipboard;
  button.onclick = async () => {
    const code = button.nextElementSibling;
    getSelection().selectAllChildren(code); // for the keyboard, where writing is refused
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  };
}
