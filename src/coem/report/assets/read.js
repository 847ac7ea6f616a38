/* A document to be read, with the words marked that tell its group from the second choice.

   What a word weighs is the difference of its logarithms of probability in the two groups, as
   `coem explain` has it for one occurrence. */
(() => {
  const LEAST = 0.15; // of the largest weight in a document; less is not marked
  const { $, data, element } = coem;
  const dialog = $("reader");
  let tables = null; // a promise: one table a view
  let at = 0;

  // -- what words weigh --------------------------------------------------------------------------

  async function load() {
    const parts = coem.pack("telling");
    return Promise.all(data.telling.map(async (view, v) => {
      const [words, weights] = await Promise.all([parts[2 * v], parts[2 * v + 1]].map(coem.inflate));
      const places = new Map(coem.textOf(words).split("\0").map((word, place) => [word, place]));
      return { ...view, places, weights: new Int8Array(weights.buffer) };
    }));
  }

  function weigher(view, i) {
    const k = data.names.length, first = data.group[i], second = data.second[i];
    return word => {
      const place = view.places.get(word);
      if (place === undefined) return 0;
      return view.step * (view.weights[place * k + first] - view.weights[place * k + second]);
    };
  }

  const WORDS = /[\p{L}\p{N}_]+/gu;

  // The words of a text with their places and weights; a run of words can weigh by itself, too.
  function weighed(text, weigh) {
    const found = [...text.matchAll(WORDS)].map(match => ({ from: match.index, word: match[0] }));
    const low = found.map(({ word }) => word.toLowerCase());
    return found.map((spot, t) => ({
      ...spot,
      weight: weigh(low[t]) + weigh(`${low[t - 1]} ${low[t]}`) + weigh(`${low[t]} ${low[t + 1]}`),
    }));
  }

  function write(node, text, spots, most) {
    let from = 0;
    for (const { from: start, word, weight } of spots) {
      const share = most ? Math.abs(weight) / most : 0;
      if (share < LEAST) continue;
      const level = Math.min(3, 1 + Math.floor(3 * share));
      const mark = element("mark", word, `${weight > 0 ? "for" : "against"} m${level}`);
      mark.title = `${weight > 0 ? "+" : "−"}${Math.abs(weight).toFixed(1)}`;
      node.append(text.slice(from, start), mark);
      from = start + word.length;
    }
    node.append(text.slice(from));
  }

  // -- what is on the dialog -----------------------------------------------------------------------

  function facts(i) {
    const list = [["Document", [data.id[i]]], ["Group", [groupLink(data.group[i])]]];
    if (data.p) list.push(["Probability", [coem.percent(data.p[i])]]);
    if (data.second && data.second[i] != null) {
      const chance = data.p2 ? ` ${coem.percent(data.p2[i])}` : "";
      list.push(["Second choice", [groupLink(data.second[i]), chance]]);
    }
    if (data.said && data.said[i] != null) list.push(["The views", coem.disagreement(i)]);
    if (data.day && data.day[i] != null) list.push(["Date", [coem.day(data.day[i])]]);
    if (data.label && data.label[i] != null) list.push(["Label", [data.labels[data.label[i]]]]);
    $("reader-facts").replaceChildren(...list.map(([name, value]) => {
      const pair = element("div"), said = element("dd");
      said.dir = "auto";
      said.append(...value);
      pair.append(element("dt", name), said);
      return pair;
    }));
  }

  function groupLink(group) {
    const link = element("a", data.names[group]);
    link.href = `#group-${group}`;
    link.addEventListener("click", () => dialog.close());
    return link;
  }

  function note(entry) {
    if (!coem.unpacks) return "This browser cannot unpack the text. Newer ones can.";
    if (entry.cut) {
      return `The first ${coem.number(entry.text.length)} of ${coem.number(entry.whole)} characters: `
        + "the whole has no room on this page. Made with --full, it has.";
    }
    return entry.text || data.texts ? "" : "There is no text on this page.";
  }

  function legend(i) {
    const names = [data.group[i], data.second[i]].map(group => data.names[group]);
    const [own, other] = ["for", "against"].map(kind => element("mark", kind === "for" ? "speak for" : "speak for", `${kind} m3`));
    $("reader-legend").replaceChildren(
      "Words like this ", own, ` ${names[0]}; words like this `, other, ` ${names[1]}, the second choice. The stronger, the more.`);
  }

  async function fill(i) {
    const entry = await coem.text(i), title = data.title ? data.title[i] : "";
    const marks = Boolean(data.telling.length && coem.unpacks && data.second && data.second[i] != null);
    const views = marks ? await (tables ??= load()) : [];
    if (i !== at) return;
    const view = views[Number($("reader-view").value) || 0];
    const [head, body] = [$("reader-title"), $("reader-text")];
    head.replaceChildren();
    body.replaceChildren();
    $("reader-marks").hidden = !view;
    const shown = title || data.id[i];
    if (!view) {
      head.append(shown);
      coem.marked(body, entry.text, coem.asked());
    } else {
      const weigh = weigher(view, i);
      const inTitle = title && view.place !== "text" ? weighed(title, weigh) : [];
      const inText = view.place === "title" ? [] : weighed(entry.text, weigh);
      const most = [...inTitle, ...inText].reduce((top, s) => Math.max(top, Math.abs(s.weight)), 0);
      write(head, shown, inTitle, most);
      write(body, entry.text, inText, most);
      legend(i);
    }
    $("reader-note").textContent = note(entry);
    $("reader-note").hidden = !$("reader-note").textContent;
  }

  // -- opening, and turning pages ----------------------------------------------------------------

  function go(i) {
    at = i;
    facts(i);
    const list = coem.list(), place = list.indexOf(i);
    $("reader-back").disabled = place <= 0;
    $("reader-next").disabled = place < 0 || place >= list.length - 1;
    $("reader-title").textContent = coem.called(i);
    fill(i).then(() => { $("reader-text").scrollTop = 0; });
  }

  coem.open = i => {
    go(i);
    if (!dialog.open) dialog.showModal();
  };

  const turn = step => {
    const list = coem.list();
    go(list[list.indexOf(at) + step]);
  };

  data.telling.forEach((view, v) => {
    const option = element("option", view.name);
    option.value = String(v);
    $("reader-view").append(option);
  });
  $("reader-choice").hidden = data.telling.length < 2;
  $("reader-view").addEventListener("change", () => fill(at));
  $("reader-close").addEventListener("click", () => dialog.close());
  $("reader-back").addEventListener("click", () => turn(-1));
  $("reader-next").addEventListener("click", () => turn(1));
  dialog.addEventListener("click", event => { if (event.target === dialog) dialog.close(); });

  // Documents on the cards and in tables of the template open, too.
  for (const shown of document.querySelectorAll("[data-row]")) {
    const i = coem.place(Number(shown.dataset.row)), name = shown.querySelector("b");
    if (i === undefined || !name) continue;
    const button = element("button", name.textContent, "open");
    button.type = "button";
    button.addEventListener("click", () => coem.open(i));
    name.replaceWith(button);
  }
})();
