/* Search in all words of all documents.

   The words are sorted; each begins with as many signs of the one before as its first sign says.
   The documents of a word are numbers that rise. The middle one is written with as many bits as
   its range needs, then those of both halves, for all words at once, level after level. */
(() => {
  const { data, n } = coem;
  const LONGEST = 40; // characters of a word in the index
  let index = null; // a promise

  // As coem.report.index has it: words, and every two signs where no blanks part words.
  const UNPARTED = "\\u0e00-\\u0eff\\u1000-\\u109f\\u1780-\\u17ff\\u3040-\\u30ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff";
  const RUNS = new RegExp(`[${UNPARTED}]+|(?:[^\\P{L}${UNPARTED}]|[^\\P{N}${UNPARTED}]|_)+`, "gu");
  const PAIRED = new RegExp(`^[${UNPARTED}]`, "u");

  coem.wordsOf = text => {
    const found = text.normalize("NFC").toLowerCase().match(RUNS) || [];
    return found.flatMap(run => PAIRED.test(run)
      ? Array.from(run, (_, at) => run.slice(at, at + 2)) : [run]);
  };

  function vocabulary(text) {
    const words = text.split("\n");
    for (let w = 1; w < words.length; w++) {
      words[w] = words[w - 1].slice(0, words[w].charCodeAt(0) - 32) + words[w].slice(1);
    }
    return words;
  }

  function bitsOf(bytes) {
    let at = 0, held = 0, left = 0;
    return width => {
      while (left < width) {
        held = (held << 8) | bytes[at++];
        left += 8;
      }
      left -= width;
      const value = (held >>> left) & ((1 << width) - 1);
      held &= (1 << left) - 1;
      return value;
    };
  }

  function decode(counts, bytes) {
    const offsets = new Uint32Array(counts.length + 1);
    for (let w = 0; w < counts.length; w++) offsets[w + 1] = offsets[w] + counts[w];
    const found = new Uint32Array(offsets[counts.length]);
    const read = bitsOf(bytes);
    let ranges = new Int32Array(4 * counts.length); // place, size, low and high of each
    for (let w = 0; w < counts.length; w++) {
      ranges[4 * w] = offsets[w];
      ranges[4 * w + 1] = counts[w];
      ranges[4 * w + 3] = n - 1;
    }
    while (ranges.length) {
      const next = new Int32Array(2 * ranges.length);
      let used = 0;
      const add = (place, size, low, high) => {
        if (!size) return;
        next[used] = place; next[used + 1] = size; next[used + 2] = low; next[used + 3] = high;
        used += 4;
      };
      for (let r = 0; r < ranges.length; r += 4) {
        const place = ranges[r], size = ranges[r + 1], low = ranges[r + 2], high = ranges[r + 3];
        const half = size >> 1, rest = size - 1 - half, least = low + half;
        const value = least + read(32 - Math.clz32(high - rest - least));
        found[place + half] = value;
        add(place, half, low, value - 1);
        add(place + half + 1, rest, value + 1, high);
      }
      ranges = next.subarray(0, used);
    }
    return { offsets, found };
  }

  // Numbers of seven bits a byte, the lowest first; the eighth says that there are more.
  function numbers(bytes) {
    const values = [];
    let value = 0, factor = 1;
    for (const byte of bytes) {
      value += (byte & 127) * factor;
      factor *= 128;
      if (byte < 128) {
        values.push(value);
        value = 0;
        factor = 1;
      }
    }
    return values;
  }

  async function load() {
    const [words, counts] = await Promise.all(coem.pack("words").map(coem.inflate));
    return {
      words: vocabulary(coem.textOf(words)),
      ...decode(numbers(counts), coem.bytes(coem.pack("places")[0])),
    };
  }

  // The first word that is not before a text.
  function first(words, text) {
    let low = 0, high = words.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (words[middle] < text) low = middle + 1; else high = middle;
    }
    return low;
  }

  function having({ words, offsets, found }, prefix) {
    const mask = new Uint8Array(n);
    let last = first(words, prefix);
    const from = offsets[last];
    while (last < words.length && words[last].startsWith(prefix)) last++;
    for (let at = from; at < offsets[last]; at++) mask[found[at]] = 1;
    return mask;
  }

  // Ids and titles, and texts as far as they are there, for what has no words: signs.
  function holding(sign) {
    return Uint8Array.from({ length: n }, (_, i) =>
      [data.id[i], coem.called(i), coem.textNow(i)?.text ?? ""].some(t => t.toLowerCase().includes(sign)) ? 1 : 0);
  }

  coem.ready = () => {
    index ??= coem.unpacks && data.index ? load() : Promise.resolve(null);
    return index;
  };

  /* Which documents have all words of a query, and whether all that they say was looked at.
     A word stands for all that begin with it. */
  coem.find = async query => {
    const parts = query.normalize("NFC").toLowerCase().split(/\s+/).filter(Boolean);
    const signs = parts.filter(part => !coem.wordsOf(part).length);
    const loaded = await coem.ready();
    if (signs.length || !loaded) await coem.allTexts();
    const masks = loaded
      ? [...coem.wordsOf(query).map(word => having(loaded, word.slice(0, LONGEST))), ...signs.map(holding)]
      : parts.map(holding);
    return { masks, all: Boolean(loaded) && data.index.cut == null && !(signs.length && data.cut) };
  };
})();
