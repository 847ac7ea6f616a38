"use strict";
(() => {
  const PAGE = 25;

  // -- headings that sort ---------------------------------------------------------------------

  function sorter(head, onSort) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort")
        ? head.getAttribute("aria-sort") !== "ascending"
        : !head.classList.contains("n"); // of numbers the largest are asked for first
      for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      onSort(up ? 1 : -1);
    });
  }

  function compare(a, b) {
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  }

  function numeric(values) {
    return values.every(value => typeof value === "string" && /^[-+]?\d+(\.\d+)?$/.test(value));
  }

  function valueOf(row, column) {
    const cell = row.cells[column];
    const value = cell.dataset.value ?? cell.textContent.trim();
    return value !== "" && isFinite(value) ? Number(value) : value;
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => sorter(head, sign => {
      const body = table.tBodies[0];
      const rows = [...body.rows].map((row, i) => [valueOf(row, column), i, row]);
      rows.sort((a, b) => sign * compare(a[0], b[0]) || a[1] - b[1]);
      body.append(...rows.map(entry => entry[2]));
    }));
  }

  // -- documents ------------------------------------------------------------------------------

  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = id => document.getElementById(id);
  const body = $("table").tBodies[0];
  let hay = null; // made when first searched, so that the page opens without it
  let order = data.id.map((_, i) => i);
  let found = order;
  let start = 0;
  const masks = new Map(); // filters of other parts of the page, by name

  function element(name, text, kind) {
    const node = document.createElement(name);
    if (kind) node.className = kind;
    node.textContent = text; // never as HTML: documents are only text
    return node;
  }

  function percent(thousandths) {
    if (thousandths == null) return "–";
    return thousandths === 0 ? "<0.1%" : `${(thousandths / 10).toFixed(thousandths < 100 ? 1 : 0)}%`;
  }

  function marked(parent, text, words) {
    const low = text.toLowerCase();
    // Some letters change their length in lower case; then nothing is marked.
    const spots = low.length === text.length ? words.map(w => [low.indexOf(w), w.length]) : [];
    let at = 0;
    for (const [from, length] of spots.filter(s => s[0] >= 0).sort((a, b) => a[0] - b[0])) {
      if (from < at) continue;
      parent.append(text.slice(at, from), element("mark", text.slice(from, from + length)));
      at = from + length;
    }
    parent.append(text.slice(at));
  }

  function line(i, words) {
    const row = document.createElement("tr");
    const says = element("span", "", "doc");
    says.dir = "auto";
    const name = element("b", "");
    marked(name, (data.title && data.title[i]) || data.id[i], words);
    says.append(name, " ");
    marked(says, data.text[i], words);
    const link = element("a", data.names[data.group[i]]);
    link.href = `#group-${data.group[i]}`;
    link.dir = "auto";
    const cells = Array.from({ length: 5 }, () => document.createElement("td"));
    cells[0].append(says);
    cells[1].append(link);
    cells[2].textContent = data.p ? percent(data.p[i]) : "–";
    cells[1].className = "name";
    cells[3].className = "name quiet";
    cells[3].dir = "auto";
    if (data.second && data.second[i] != null) {
      cells[3].append(data.names[data.second[i]]);
      if (data.p2) cells[3].append(` ${percent(data.p2[i])}`);
    }
    cells[4].textContent = data.apart && data.apart[i] != null ? data.apart[i] : "–";
    cells[2].className = cells[4].className = "n";
    row.append(...cells);
    return row;
  }

  function words() {
    return $("query").value.toLowerCase().split(/\s+/).filter(Boolean);
  }

  function show() {
    const asked = words();
    body.replaceChildren(...found.slice(start, start + PAGE).map(i => line(i, asked)));
    const end = Math.min(start + PAGE, found.length);
    $("where").textContent = found.length ? `${(start + 1).toLocaleString("en")}–${end.toLocaleString("en")} of ${found.length.toLocaleString("en")}` : "";
    $("found").textContent = `${found.length.toLocaleString("en")} ${found.length === 1 ? "document" : "documents"} found`;
    $("back").disabled = start === 0;
    $("next").disabled = end >= found.length;
  }

  function search() {
    const asked = words();
    if (asked.length && !hay) {
      hay = data.id.map((id, i) =>
        `${id}\n${data.title ? data.title[i] : ""}\n${data.text[i]}`.toLowerCase());
    }
    const group = $("choice").value;
    found = order.filter(i => [...masks.values()].every(passes => passes(i)) &&
      (group === "" || data.group[i] === Number(group)) && asked.every(word => hay[i].includes(word)));
    start = 0;
    show();
  }

  function turn(step) {
    start += step * PAGE;
    show();
    $("documents").scrollIntoView();
  }

  for (const head of $("table").tHead.rows[0].cells) {
    const values = data[head.dataset.key];
    if (!values) continue;
    const named = head.dataset.key === "group" || head.dataset.key === "second";
    const numbers = numeric(values); // ids are text even if all of them are numbers
    const of = i => named ? data.names[values[i]] ?? "" : numbers ? Number(values[i]) : values[i];
    sorter(head, sign => {
      order = data.id.map((_, i) => i).sort((a, b) => sign * compare(of(a), of(b)) || a - b);
      search();
    });
  }
  $("query").addEventListener("input", search);
  $("choice").addEventListener("change", search);
  $("search").addEventListener("submit", event => event.preventDefault());
  $("back").addEventListener("click", () => turn(-1));
  $("next").addEventListener("click", () => turn(1));
  $("search").hidden = false;
  document.querySelector(".pager").hidden = false;
  search();

  // -- for other parts of the page ------------------------------------------------------------

  window.coem = {
    data,
    filter(name, passes) {
      if (passes) masks.set(name, passes); else masks.delete(name);
      search();
    },
    open(i) {
      start = PAGE * Math.floor(Math.max(found.indexOf(i), 0) / PAGE);
      show();
      const row = body.rows[found.indexOf(i) - start];
      if (row) row.scrollIntoView({ block: "center" });
    },
  };

  // -- paper ----------------------------------------------------------------------------------

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const part of closed) part.open = true;
  });
  addEventListener("afterprint", () => {
    for (const part of closed) part.open = false;
  });
})();
