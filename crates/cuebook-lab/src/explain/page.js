"use strict";
const text = document.getElementById("text"), panel = document.getElementById("origin");
const rows = [["what", "data-k"], ["who", "data-l"], ["where", "data-w"], ["the source says", "data-x"], ["section", "data-s"], ["bytes of the text", "data-b"]];
let pinned = null;
function show(piece) {
  const list = document.createElement("dl");
  for (const [name, key] of rows) {
    const said = piece.getAttribute(key);
    if (!said) continue;
    const term = document.createElement("dt"), what = document.createElement("dd");
    term.textContent = name;
    what.textContent = said;
    list.append(term, what);
  }
  panel.replaceChildren(list);
}
function clear() {
  for (const marked of text.querySelectorAll(".on")) marked.classList.remove("on");
}
function pin(piece) {
  clear();
  pinned = piece;
  if (piece) { piece.classList.add("on"); show(piece); }
}
for (const event of ["mouseover", "focusin"]) {
  text.addEventListener(event, (e) => { const piece = e.target.closest(".p"); if (piece && !pinned) show(piece); });
}
text.addEventListener("click", (e) => { const piece = e.target.closest(".p"); pin(piece === pinned ? null : piece); });
text.addEventListener("keydown", (e) => { if (e.key === "Enter") pin(e.target.closest(".p")); });
document.addEventListener("keydown", (e) => { if (e.key === "Escape") pin(null); });
for (const row of document.querySelectorAll("tr[data-c]")) {
  row.addEventListener("click", () => {
    pin(null);
    const pieces = text.querySelectorAll('.p[data-c="' + Number(row.getAttribute("data-c")) + '"]');
    for (const piece of pieces) piece.classList.add("on");
    if (pieces[0]) { show(pieces[0]); pieces[0].scrollIntoView({ block: "center" }); }
  });
}
