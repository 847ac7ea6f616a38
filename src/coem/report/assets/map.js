// The map of documents on a canvas. Documents are only text: they are shown by textContent.
(() => {
  const frame = document.getElementById("map-frame");
  if (!frame) return;
  const $ = id => document.getElementById(id);
  const canvas = $("map-canvas");
  const hint = $("map-hint");
  const page = typeof coem === "undefined" ? null : coem;
  const bytes = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0)).buffer;
  const places = new Uint16Array(bytes(frame.dataset.places));
  const groups = new Uint16Array(bytes(frame.dataset.groups));
  const labels = JSON.parse(frame.dataset.labels);
  const marks = JSON.parse(frame.dataset.marks);
  const n = groups.length;
  const MARGIN = 14;
  const REACH = 9; // pixels from a point at which it is meant

  // The document of a row: all rows are documents of the page, or some are.
  const some = frame.dataset.rows ? new Uint32Array(bytes(frame.dataset.rows)) : null;
  const documentOf = some ? new Int32Array(n).fill(-1) : null;
  if (some) some.forEach((row, i) => { documentOf[row] = i; });
  const place = row => some ? documentOf[row] : row;
  const rowOf = i => some ? some[i] : i;

  const chosen = new Set(); // groups of the legend
  let inside = null; // rows within the lasso, as 0 and 1
  let passing = null; // rows that the other filters of the page let pass
  let side = 0;
  let ratio = 1;
  let cells = null;
  let line = null; // that is being drawn around documents
  let asked = false; // for a picture

  const x = row => MARGIN + places[2 * row] / 65535 * (side - 2 * MARGIN);
  const y = row => MARGIN + places[2 * row + 1] / 65535 * (side - 2 * MARGIN);
  const seen = row => (!chosen.size || chosen.has(groups[row])) && (!inside || inside[row])
    && (!passing || passing[row]);

  // -- drawing --------------------------------------------------------------------------------

  function measure() {
    const box = frame.getBoundingClientRect();
    side = Math.max(Math.min(box.width, box.height) - 2, 50);
    ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(box.width * ratio);
    canvas.height = Math.round(box.height * ratio);
    cells = null;
  }

  const OUTLINES = {
    disc(pen, a, r) { pen.arc(a, a, r, 0, 2 * Math.PI); },
    square(pen, a, r) { pen.rect(a - r, a - r, 2 * r, 2 * r); },
    triangle(pen, a, r) { pen.moveTo(a, a - 1.3 * r); pen.lineTo(a + 1.2 * r, a + r); pen.lineTo(a - 1.2 * r, a + r); },
  };
  const scratch = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

  // How much of each pixel around a point its shape covers.
  function stampOf(outline, radius) {
    const side = 2 * Math.ceil(1.4 * radius) + 1;
    scratch.canvas.width = scratch.canvas.height = side;
    scratch.beginPath();
    outline(scratch, side / 2, radius);
    scratch.fill();
    const { data } = scratch.getImageData(0, 0, side, side);
    return { side, cover: Float32Array.from({ length: side * side }, (_, i) => data[4 * i + 3] / 255) };
  }

  function colourOf(style, name) {
    scratch.canvas.width = scratch.canvas.height = 1;
    scratch.fillStyle = style.getPropertyValue(name);
    scratch.fillRect(0, 0, 1, 1);
    return scratch.getImageData(0, 0, 1, 1).data;
  }

  // Browsers take seconds for paths of 20,000 parts; pixels take milliseconds.
  function put(image, stamp, colour, strength, row) {
    const { data, width, height } = image;
    const left = Math.round(x(row) * ratio) - (stamp.side >> 1);
    const top = Math.round(y(row) * ratio) - (stamp.side >> 1);
    if (left < 0 || top < 0 || left + stamp.side > width || top + stamp.side > height) return;
    for (let i = 0, k = 0; i < stamp.side; i++) {
      let at = 4 * ((top + i) * width + left);
      for (let j = 0; j < stamp.side; j++, k++, at += 4) {
        const share = strength * stamp.cover[k];
        if (!share) continue;
        for (let c = 0; c < 3; c++) data[at + c] += (colour[c] - data[at + c]) * share;
      }
    }
  }

  function points(pen, style) {
    const image = pen.createImageData(canvas.width, canvas.height);
    const [red, green, blue] = colourOf(style, "--card");
    const ground = new DataView(Uint8Array.of(red, green, blue, 255).buffer).getUint32(0, true);
    new Uint32Array(image.data.buffer).fill(ground);
    const radius = ratio * Math.max(1.3, Math.min(3.2, 0.004 * side * Math.sqrt(4000 / (n + 1000))));
    const stamps = Object.fromEntries(Object.keys(OUTLINES).map(kind => [kind, stampOf(OUTLINES[kind], radius)]));
    const looks = new Map(marks.map(([group, colour, shape]) => [group, [stamps[shape], colourOf(style, `--m${colour}`)]]));
    const quiet = colourOf(style, "--quiet");
    for (let row = 0; row < n; row++) {
      if (!seen(row)) put(image, looks.get(groups[row])[0], quiet, 0.16, row);
    }
    for (let row = 0; row < n; row++) {
      if (seen(row)) put(image, ...looks.get(groups[row]), 0.8, row);
    }
    pen.putImageData(image, 0, 0);
  }

  function draw() {
    asked = false;
    const style = getComputedStyle(document.documentElement);
    const pen = canvas.getContext("2d");
    points(pen, style);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    name(pen, style);
    if (line && line.length > 3) around(pen, style, line);
  }

  // At most once for each picture on the screen, and after what the reader waits for.
  function redraw() {
    if (!asked) requestAnimationFrame(draw);
    asked = true;
  }

  // Names of the largest groups first; one that would lie on another is not drawn.
  function name(pen, style) {
    const size = Math.max(11, Math.min(15, side / 46));
    pen.font = `600 ${size}px system-ui, sans-serif`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.lineJoin = "round";
    pen.lineWidth = 4;
    const taken = [];
    for (const [group, across, down, text] of labels) {
      if (chosen.size && !chosen.has(group)) continue;
      const half = pen.measureText(text).width / 2 + 3;
      const a = Math.min(Math.max(MARGIN + across * (side - 2 * MARGIN), half), side - half);
      const b = MARGIN + down * (side - 2 * MARGIN);
      if (taken.some(t => Math.abs(t[0] - a) < t[2] + half && Math.abs(t[1] - b) < 1.4 * size)) continue;
      taken.push([a, b, half]);
      pen.strokeStyle = style.getPropertyValue("--card");
      pen.fillStyle = style.getPropertyValue("--ink");
      pen.strokeText(text, a, b);
      pen.fillText(text, a, b);
    }
  }

  function around(pen, style, line) {
    pen.beginPath();
    for (const [a, b] of line) pen.lineTo(a, b);
    pen.closePath();
    pen.strokeStyle = style.getPropertyValue("--accent");
    pen.lineWidth = 1.5;
    pen.stroke();
  }

  // -- which document is meant ----------------------------------------------------------------

  function cellsOf() {
    cells = new Map();
    for (let row = 0; row < n; row++) {
      const key = Math.floor(x(row) / 16) * 4096 + Math.floor(y(row) / 16);
      if (cells.has(key)) cells.get(key).push(row); else cells.set(key, [row]);
    }
  }

  function nearest(a, b) {
    if (!cells) cellsOf();
    let best = -1;
    let least = REACH * REACH;
    for (let i = -1; i <= 1; i++) {
      for (let j = -1; j <= 1; j++) {
        for (const row of cells.get((Math.floor(a / 16) + i) * 4096 + Math.floor(b / 16) + j) || []) {
          const far = (x(row) - a) ** 2 + (y(row) - b) ** 2;
          if (far < least && seen(row)) { least = far; best = row; }
        }
      }
    }
    return best;
  }

  const nameOf = new Map([...document.querySelectorAll(".map-legend li")].map(item =>
    [Number(item.dataset.group), item.querySelector(".legend-name").textContent]));

  function told(i) {
    const data = page && page.data;
    return data && i >= 0 ? (data.title && data.title[i]) || String(data.id[i]) : "";
  }

  function tell(row, a, b) {
    hint.hidden = row < 0;
    canvas.style.cursor = row < 0 ? "crosshair" : "pointer";
    if (row < 0) return;
    const title = document.createElement("b");
    const group = document.createElement("span");
    title.dir = group.dir = "auto";
    title.textContent = told(place(row)) || "a document that is not on this page";
    group.textContent = nameOf.get(groups[row]);
    hint.replaceChildren(title, group);
    const right = a > side / 2;
    hint.style.left = right ? "auto" : `${a + 12}px`;
    hint.style.right = right ? `${frame.clientWidth - a + 12}px` : "auto";
    hint.style.top = `${Math.min(b + 8, side - 70)}px`;
  }

  // -- filters --------------------------------------------------------------------------------

  function changed() {
    const any = chosen.size || inside;
    let count = 0;
    const own = row => (!chosen.size || chosen.has(groups[row])) && (!inside || inside[row]);
    for (let row = 0; row < n; row++) count += own(row) ? 1 : 0;
    $("map-all").disabled = !any;
    $("map-status").textContent = any ? `${count.toLocaleString("en")} of ${n.toLocaleString("en")} documents chosen` : "";
    if (page && page.filter) page.filter("map", any ? i => own(rowOf(i)) : null);
    redraw();
  }

  function within(line) {
    const found = new Uint8Array(n);
    for (let row = 0; row < n; row++) {
      const a = x(row);
      const b = y(row);
      let odd = false;
      for (let i = 0, j = line.length - 1; i < line.length; j = i++) {
        const [xi, yi] = line[i];
        const [xj, yj] = line[j];
        if ((yi > b) !== (yj > b) && a < (xj - xi) * (b - yi) / (yj - yi) + xi) odd = !odd;
      }
      found[row] = odd ? 1 : 0;
    }
    return found;
  }

  const spot = event => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", event => {
    if (event.button) return;
    line = [spot(event)];
    if (event.pointerType !== "touch") canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", event => {
    const at = spot(event);
    if (!line || event.pointerType === "touch") { tell(nearest(...at), ...at); return; }
    line.push(at);
    if (line.length > 3) { hint.hidden = true; redraw(); }
  });
  canvas.addEventListener("pointerup", event => {
    const drawn = line;
    line = null;
    if (!drawn) return;
    const [a, b] = spot(event);
    const moved = drawn.some(([c, d]) => Math.abs(c - a) + Math.abs(d - b) > 6);
    if (moved && event.pointerType !== "touch") {
      inside = within(drawn);
      if (!inside.includes(1)) inside = null;
      changed();
      return;
    }
    const row = nearest(a, b);
    tell(row, a, b);
    if (row >= 0 && place(row) >= 0 && page && page.open) page.open(place(row));
  });
  canvas.addEventListener("pointercancel", () => { line = null; });
  canvas.addEventListener("pointerleave", () => { hint.hidden = true; });

  function clear() {
    chosen.clear();
    inside = null;
    for (const button of document.querySelectorAll(".map-legend button")) button.setAttribute("aria-pressed", "false");
  }

  for (const item of document.querySelectorAll(".map-legend li")) {
    const group = Number(item.dataset.group);
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    button.append(...item.childNodes);
    item.append(button);
    button.addEventListener("click", () => {
      if (!chosen.delete(group)) chosen.add(group);
      button.setAttribute("aria-pressed", String(chosen.has(group)));
      changed();
    });
  }
  $("map-all").addEventListener("click", () => { clear(); changed(); });
  if (page && page.onReset) page.onReset(() => { clear(); $("map-all").disabled = true; $("map-status").textContent = ""; redraw(); });
  if (page && page.onChange) {
    page.onChange(() => {
      passing = null;
      if (page.count < page.n) {
        passing = new Uint8Array(n);
        page.shown.forEach((one, i) => { passing[rowOf(i)] = one; });
      }
      redraw();
    });
  }

  canvas.hidden = false;
  for (const part of document.querySelectorAll("#map .with-script")) part.hidden = false;
  new ResizeObserver(() => { measure(); redraw(); }).observe(frame);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
})();
