/* What is packed into the page: bytes that were deflated and written in base64. */
(() => {
  coem.unpacks = typeof DecompressionStream === "function";

  coem.bytes = packed => {
    const signs = atob(packed), bytes = new Uint8Array(signs.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = signs.charCodeAt(i);
    return bytes;
  };

  coem.inflate = async packed => {
    const stream = new Blob([coem.bytes(packed)]).stream();
    const whole = stream.pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(whole).arrayBuffer());
  };

  // The parts of a pack; part after part, with blanks between them.
  const packs = new Map();
  coem.pack = name => {
    if (!packs.has(name)) packs.set(name, coem.$(`pack-${name}`).textContent.trim().split(" "));
    return packs.get(name);
  };

  coem.textOf = bytes => new TextDecoder().decode(bytes);

  // -- the texts of documents: blocks of consecutive ones -------------------------------------

  const starts = coem.data.blocks;
  const blocks = new Map(); // promises
  const open = new Map(); // what they gave

  function blockOf(i) {
    let low = 0;
    for (let high = starts.length; high - low > 1;) {
      const middle = (low + high) >> 1;
      if (starts[middle] <= i) low = middle; else high = middle;
    }
    return low;
  }

  async function load(block) {
    const texts = coem.textOf(await coem.inflate(coem.pack("texts")[block])).split("\0");
    open.set(block, texts);
    return texts;
  }

  // A text that is cut ends with the sign 1 and the number of characters of the whole.
  function entry(text) {
    const cut = text.indexOf("\x01");
    if (cut < 0) return { text, whole: text.length, cut: false };
    return { text: text.slice(0, cut), whole: Number(text.slice(cut + 1)), cut: true };
  }

  // The text of a document if its block is unpacked already, else undefined.
  coem.textNow = i => {
    if (!starts.length) return entry("");
    const block = blockOf(i);
    return open.has(block) ? entry(open.get(block)[i - starts[block]]) : undefined;
  };

  coem.text = async i => {
    if (!starts.length || !coem.unpacks) return entry("");
    const block = blockOf(i);
    if (!blocks.has(block)) blocks.set(block, load(block));
    return entry((await blocks.get(block))[i - starts[block]]);
  };

  coem.allTexts = () => Promise.all(starts.map(first => coem.text(first)));
})();
