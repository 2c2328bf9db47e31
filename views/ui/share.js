// The link is made where its address is known: a server behind a proxy does not know its own.
export default function ({ data, parentElement }) {
  const button = parentElement.querySelector("button");
  const word = button.querySelector("span");
  const status = parentElement.querySelector("[role=status]");
  const link = () => {
    const made = new URL(window.location.href);
    // What its maker compares with is no part of the run.
    const kept = [...made.searchParams].filter(([name]) => ["baseline", "with"].includes(name));
    made.search = new URLSearchParams([["run", data.run], ...kept]).toString();
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
    local.hidden = !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(window.location.hostname);
    setTimeout(() => { word.textContent = "Share"; status.textContent = ""; }, 2500);
  };
}
