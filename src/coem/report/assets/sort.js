/* Headings that sort. */
(() => {
  coem.compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));

  coem.sorter = (head, onSort) => {
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
  };

  function valueOf(row, column) {
    const cell = row.cells[column];
    const value = cell.dataset.value ?? cell.textContent.trim();
    return value !== "" && isFinite(value) ? Number(value) : value;
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => coem.sorter(head, sign => {
      const body = table.tBodies[0];
      const rows = [...body.rows].map((row, i) => [valueOf(row, column), i, row]);
      rows.sort((a, b) => sign * coem.compare(a[0], b[0]) || a[1] - b[1]);
      body.append(...rows.map(entry => entry[2]));
    }));
  }
})();
