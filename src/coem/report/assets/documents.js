/* The table of the documents that are shown, page by page, in any order. */
(() => {
  const PAGE = 25, LENGTH = 100;
  const { $, data, element } = coem;
  const body = $("table").tBodies[0];
  let order = data.id.map((_, i) => i);
  let found = order;
  let start = 0;
  coem.list = () => found;

  // -- what is shown of a text -----------------------------------------------------------------

  // Where a word of the text begins with one of those that are asked for.
  coem.spots = (text, asked) => {
    const low = text.toLowerCase();
    if (low.length !== text.length) return []; // some letters are longer in lower case
    const spots = [];
    for (const word of asked) {
      for (let at = low.indexOf(word); at >= 0; at = low.indexOf(word, at + word.length)) {
        if (!coem.wordsOf(word).length || !/[\p{L}\p{N}_]/u.test(low[at - 1] ?? " ") || word.charCodeAt(0) > 0xdff) {
          spots.push([at, word.length]);
        }
      }
    }
    return spots.sort((a, b) => a[0] - b[0]);
  };

  coem.marked = (parent, text, asked) => {
    let at = 0;
    for (const [from, length] of coem.spots(text, asked)) {
      if (from < at) continue;
      parent.append(text.slice(at, from), element("mark", text.slice(from, from + length)));
      at = from + length;
    }
    parent.append(text.slice(at));
  };

  // The beginning of a text, or the place in it where a word was found.
  function excerpt(text, asked) {
    const line = text.slice(0, 20000).replace(/\s+/g, " ").trim();
    const [spot] = coem.spots(line, asked);
    const from = spot && spot[0] > LENGTH - 20 ? line.lastIndexOf(" ", spot[0] - 40) + 1 : 0;
    if (line.length - from <= LENGTH) return (from ? "…" : "") + line.slice(from);
    const cut = line.slice(from, from + LENGTH - 1);
    const end = cut.lastIndexOf(" ");
    return `${from ? "…" : ""}${(end > LENGTH / 2 ? cut.slice(0, end) : cut).replace(/[ ,;:-]+$/, "")}…`;
  }

  coem.asked = () => {
    const parts = coem.query.normalize("NFC").toLowerCase().split(/\s+/).filter(Boolean);
    return parts.flatMap(part => coem.wordsOf(part).length ? coem.wordsOf(part) : [part]);
  };

  // -- the rows of the table --------------------------------------------------------------------

  function opener(i, asked) {
    const button = element("button", "", "open");
    button.type = "button";
    coem.marked(button, coem.called(i), asked);
    button.addEventListener("click", () => coem.open(i));
    return button;
  }

  function line(i, asked) {
    const row = document.createElement("tr");
    const says = element("span", "", "doc"), text = element("span");
    says.dir = "auto";
    says.append(opener(i, asked), " ", text);
    const fill = entry => coem.marked(text, excerpt(entry.text, asked), asked);
    const now = coem.textNow(i);
    if (now) fill(now); else coem.text(i).then(fill);
    const link = element("a", data.names[data.group[i]]);
    link.href = `#group-${data.group[i]}`;
    link.dir = "auto";
    const cells = Array.from({ length: 5 }, () => document.createElement("td"));
    cells[0].append(says);
    cells[1].append(link);
    cells[1].className = "name";
    cells[2].textContent = data.p ? coem.percent(data.p[i]) : "–";
    cells[2].className = "n";
    cells[3].className = "name quiet more";
    cells[3].dir = "auto";
    if (data.second && data.second[i] != null) {
      cells[3].append(data.names[data.second[i]]);
      if (data.p2) cells[3].append(` ${coem.percent(data.p2[i])}`);
    }
    cells[4].className = "more";
    cells[4].append(...coem.disagreement(i));
    row.append(...cells);
    return row;
  }

  // In words first, then the figure.
  coem.disagreement = i => {
    if (!data.said || data.said[i] == null) return ["–"];
    return [data.words[data.said[i]], " ", element("span", String(data.apart[i]), "quiet")];
  };

  function show() {
    const asked = coem.asked(), end = Math.min(start + PAGE, found.length);
    body.replaceChildren(...found.slice(start, end).map(i => line(i, asked)));
    $("where").textContent = found.length
      ? `${coem.number(start + 1)}–${coem.number(end)} of ${coem.number(found.length)}` : "";
    $("back").disabled = start === 0;
    $("next").disabled = end >= found.length;
  }

  function restart() {
    found = order.filter(i => coem.shown[i]);
    start = 0;
    show();
  }

  function turn(step) {
    start += step * PAGE;
    show();
    $("documents").scrollIntoView();
  }

  for (const head of $("table").tHead.rows[0].cells) {
    const key = head.dataset.key, values = data[key];
    if (!values) continue;
    const named = key === "group" || key === "second";
    // Ids are text even if all of them are numbers.
    const numbers = values.every(value => typeof value === "string" && /^[-+]?\d+(\.\d+)?$/.test(value));
    const of = i => named ? data.names[values[i]] ?? "" : numbers ? Number(values[i]) : values[i];
    coem.sorter(head, sign => {
      order = data.id.map((_, i) => i).sort((a, b) => sign * coem.compare(of(a), of(b)) || a - b);
      restart();
    });
  }
  $("back").addEventListener("click", () => turn(-1));
  $("next").addEventListener("click", () => turn(1));
  document.querySelector(".pager").hidden = false;
  coem.onChange(restart);
  show();
})();
