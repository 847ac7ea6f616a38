/* What is asked for: words, group, label, probability, disagreement, date. And the table to take away.

   Another part adds a filter by coem.filter(name, test), and an element to #filters. */
(() => {
  const { $, data } = coem;
  let asked = 0; // the number of the last search; an older one that ends later is dropped
  let complete = true; // whether the search looked at all that documents say
  coem.query = "";

  async function search() {
    const turn = ++asked, query = $("query").value;
    const found = query.trim() ? await coem.find(query) : { masks: [], all: true };
    if (turn !== asked) return;
    coem.query = query;
    complete = found.all;
    coem.filter("words", i => found.masks.every(mask => mask[i]));
  }

  function chosen(name, values) {
    const value = $(name).value;
    coem.filter(name, value === "" ? null : i => values[i] === Number(value));
  }

  function probability() {
    const [least, most] = ["least", "most"].map(id => $(id).value);
    const from = least === "" ? 0 : Number(least), to = most === "" ? 100 : Number(most);
    // What counts is the figure that is shown: "to 99" has all that are shown as 99%.
    const shown = i => parseFloat(coem.percent(data.p[i]).replace("<0.1", "0"));
    coem.filter("probability", least === "" && most === "" ? null
      : i => data.p[i] != null && shown(i) >= from && shown(i) <= to);
  }

  function dated() {
    const [first, last] = ["first-day", "last-day"].map(id => $(id).valueAsNumber / 86400000);
    coem.filter("day", isNaN(first) && isNaN(last) ? null
      : i => data.day[i] != null && !(data.day[i] < first) && !(data.day[i] > last));
  }

  // -- what there is, in words ------------------------------------------------------------------

  function tell() {
    const parts = [`${coem.many(coem.count, "document")} found`];
    if (coem.n < data.rows) {
      parts.push(`among the ${coem.number(coem.n)} of ${coem.number(data.rows)} that have room on this page`);
    }
    if (coem.query.trim() && !complete) {
      parts.push(!coem.unpacks || !data.index ? "by id and title alone: this browser cannot unpack the rest"
        : data.index.cut != null ? `in the first ${coem.number(data.index.cut)} characters of each`
          : "signs were looked for in the parts of the texts that are on this page");
    }
    $("found").textContent = parts.join(", ");
    $("save").disabled = coem.count === 0;
  }

  // -- the table to take away ---------------------------------------------------------------------

  // A program for tables takes a text that begins so for a formula, and works it out; io/formulas.py
  // has the same patterns. A number is none.
  const formula = /^(?:[\t\r\n]|\s*[=+\-@\uff1d\uff0b\uff0d\uff20])/;
  const number = /^\s*(?:[-+]?(?:\d[\d.,]*|[.,]\d+)(?:[eE][-+]?\d+)?\s*%?|[-+=@])\s*$/;
  const text = value => {
    const safe = formula.test(value) && !number.test(value) ? `'${value}` : value;
    return /[",\r\n']/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const share = value => value == null ? "" : String(value / 1000);

  function columns() {
    const some = {
      id: i => text(data.id[i]),
      title: data.title && (i => text(data.title[i])),
      group: i => String(data.group[i]),
      name: i => text(data.names[data.group[i]]),
      probability: data.p && (i => share(data.p[i])),
      second: data.second && (i => data.second[i] == null ? "" : text(data.names[data.second[i]])),
      second_probability: data.p2 && (i => share(data.p2[i])),
      disagreement: data.apart && (i => data.apart[i] == null ? "" : String(data.apart[i])),
      date: data.day && (i => data.day[i] == null ? "" : coem.day(data.day[i])),
      label: data.label && (i => data.label[i] == null ? "" : text(data.labels[data.label[i]])),
    };
    return Object.entries(some).filter(([, of]) => of);
  }

  coem.table = () => {
    const parts = columns(), lines = [parts.map(([name]) => name).join(",")];
    for (let i = 0; i < coem.n; i++) {
      if (coem.shown[i]) lines.push(parts.map(([, of]) => of(i)).join(","));
    }
    return `\ufeff${lines.join("\r\n")}\r\n`; // with the mark by which spreadsheets know UTF-8
  };

  function save() {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([coem.table()], { type: "text/csv;charset=utf-8" }));
    link.download = "documents.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  $("query").addEventListener("focus", coem.ready, { once: true });
  $("query").addEventListener("input", search);
  $("choice").addEventListener("change", () => chosen("choice", data.group));
  $("label")?.addEventListener("change", () => chosen("label", data.label));
  $("apart")?.addEventListener("change", () => chosen("apart", data.said));
  for (const id of ["least", "most"]) $(id)?.addEventListener("input", probability);
  for (const id of ["first-day", "last-day"]) $(id)?.addEventListener("input", dated);
  $("search").addEventListener("submit", event => event.preventDefault());
  $("all").addEventListener("click", coem.reset);
  $("save").addEventListener("click", save);
  coem.onReset(() => {
    asked++;
    coem.query = "";
    $("search").reset();
  });
  coem.onChange(tell);
  tell();
  $("search").hidden = false;
})();
