"use strict";
// Tables can be sorted and filtered. The page says the same without this script.
const valueOf = (row, column) => {
  const text = (row.cells[column]?.textContent ?? "").trim();
  const number = parseFloat(text.replace(/\u2212/g, "-").replace(/[,%\s]/g, "").replace(/^[^\d.<+-]+/, "").replace(/^</, ""));
  return { text, number: Number.isNaN(number) ? Infinity : number };
};
for (const table of document.querySelectorAll("table.rows, table.matrix")) {
  const body = table.tBodies[0];
  if (!body || body.rows.length < 3) continue;
  let column = 0;
  for (const head of table.tHead.rows[0].cells) {
    const at = column;
    column += head.colSpan;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append("\u21c5");
    button.setAttribute("aria-label", "Sort by " + head.textContent.trim());
    head.append(" ", button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].map((row) => [valueOf(row, at), row]);
      const names = at === 0;
      rows.sort(([a], [b]) => (down ? -1 : 1) * (names ? a.text.localeCompare(b.text, undefined, { numeric: true }) : a.number === b.number ? 0 : a.number - b.number));
      body.append(...rows.map(([, row]) => row));
    });
  }
  if (body.rows.length > 10) {
    const label = document.createElement("label");
    const input = document.createElement("input");
    label.className = "filter";
    input.type = "search";
    label.append("Filter: ", input);
    table.closest(".scroll").before(label);
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      for (const row of body.rows) row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
    });
  }
}
