// Cuts the tree of groups: cards of merged groups go under one heading, and come out again.
(() => {
  const tree = document.getElementById("tree");
  if (!tree) return;
  const $ = id => document.getElementById(id);
  const { merges, groups, order, across } = Object.fromEntries(
    ["merges", "groups", "order", "across"].map(name => [name, JSON.parse(tree.dataset[name])]));
  const rank = new Map(order.map((group, i) => [group, i]));
  const cards = $("cards");
  const own = [...cards.children]; // in the order of the page
  const size = $("tree-size");

  function cut(n) {
    const parts = new Map(groups.map((group, i) => [i, [group]]));
    merges.slice(0, groups.length - n).forEach(([a, b], t) => {
      const both = [...parts.get(a), ...parts.get(b)];
      parts.delete(a);
      parts.delete(b);
      parts.set(groups.length + t, both.sort((g, h) => rank.get(g) - rank.get(h)));
    });
    return [...parts.values()];
  }

  function heading(part) {
    const summary = document.createElement("summary");
    const many = document.createElement("b");
    many.textContent = `${part.length} ${tree.dataset.nouns} together: `;
    summary.append(many);
    part.forEach((group, i) => {
      const name = document.createElement("span");
      name.dir = "auto";
      name.textContent = $(`name-${group}`).lastElementChild.textContent;
      summary.append(i ? " · " : "", name);
    });
    return summary;
  }

  function show() {
    const n = Number(size.value);
    const whole = n === groups.length;
    cards.replaceChildren(...own);
    for (const part of cut(n)) {
      if (part.length < 2) continue;
      const box = document.createElement("details");
      const inner = document.createElement("div");
      box.className = "merged";
      inner.className = "cards";
      const members = own.filter(card => part.includes(Number(card.id.slice("group-".length))));
      box.append(heading(part), inner);
      members[0].before(box);
      inner.append(...members);
    }
    const said = whole ? `all ${n} ${tree.dataset.nouns}` : n === 1 ? "1 part" : `${n} parts`;
    $("tree-said").textContent = said;
    size.setAttribute("aria-valuetext", said);
    mark(n, whole);
  }

  // The line stands between the last merge that holds and the first that is undone.
  function mark(n, whole) {
    const line = $("tree-cut");
    const last = groups.length - n - 1;
    const end = last + 1 < across.length ? across[last + 1] : across[last] + 12;
    const x = whole ? 0 : (across[last] + end) / 2;
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
    line.setAttribute("visibility", whole ? "hidden" : "visible");
  }

  size.addEventListener("input", show);
  $("tree-control").hidden = false;
  show();
})();
