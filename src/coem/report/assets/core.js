"use strict";
/* What all parts of the page share.

   coem.data            the columns of the documents; document i is entry i of each
   coem.n               their number
   coem.shown           Uint8Array: 1 where document i passes all filters
   coem.count           how many do
   coem.filter(name, f) keep the documents i with f(i); null takes the filter of this name away
   coem.onChange(f)     call f whenever `shown` has changed
   coem.reset()         take all filters away; coem.onReset(f): call f then
   coem.open(i)         open document i to be read (read.js)
   coem.text(i)         promise of its text (texts.js)

   Documents are hostile: they become nodes by textContent and append alone, never by HTML. */
const coem = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const n = data.id.length;
  const masks = new Map();
  const onChange = [];
  const onReset = [];
  const places = data.row && new Map(data.row.map((row, i) => [row, i]));

  const coem = {
    data,
    n,
    shown: new Uint8Array(n).fill(1),
    count: n,
    onChange: callback => { onChange.push(callback); },
    onReset: callback => { onReset.push(callback); },

    filter(name, passes) {
      if (!passes && !masks.delete(name)) return;
      if (passes) {
        const mask = new Uint8Array(n);
        for (let i = 0; i < n; i++) mask[i] = passes(i) ? 1 : 0;
        masks.set(name, mask);
      }
      changed();
    },

    reset() {
      masks.clear();
      for (const callback of onReset) callback();
      changed();
    },

    // The place of a row of the data among the documents of the page, or undefined.
    place: row => places ? places.get(row) : row < n ? row : undefined,

    $: id => document.getElementById(id),

    element(name, text = "", kind = "") {
      const node = document.createElement(name);
      if (kind) node.className = kind;
      node.textContent = text;
      return node;
    },

    percent(thousandths) {
      if (thousandths == null) return "–";
      if (thousandths === 0) return "<0.1%";
      return `${(thousandths / 10).toFixed(thousandths < 100 ? 1 : 0)}%`;
    },

    // Of a number of days since 1970: 2025-12-31.
    day: days => new Date(86400000 * days).toISOString().slice(0, 10),

    number: value => value.toLocaleString("en"),
    many: (value, noun) => `${coem.number(value)} ${noun}${value === 1 ? "" : "s"}`,
    called: i => (data.title && data.title[i]) || data.id[i],
  };

  function changed() {
    const shown = new Uint8Array(n).fill(1);
    for (const mask of masks.values()) for (let i = 0; i < n; i++) shown[i] &= mask[i];
    coem.shown = shown;
    coem.count = 0;
    for (let i = 0; i < n; i++) coem.count += shown[i];
    for (const callback of onChange) callback();
  }

  return coem;
})();
