// What is pointed at, pinned and searched for, and addresses of places in a page.

// An address names a pane and a line, or an instruction: #hlo:fusion.12, #jaxpr:14, #python:model.py:3, #2/hlo:dot.
export function parseAddress(hash) {
  let text;
  try {
    text = decodeURIComponent(hash.replace(/^#/, ""));
  } catch {
    return null;
  }
  const match = /^(?:(\d+)\/)?(python|jaxpr|stablehlo|hlo):(.+)$/.exec(text);
  if (!match) return null;
  const program = match[1] ? Number(match[1]) - 1 : 0;
  const [pane, rest] = [match[2], match[3]];
  if (pane === "python") {
    const place = /^(.*):(\d+)$/.exec(rest);
    return place ? { program, pane, file: place[1], line: Number(place[2]) - 1 } : null;
  }
  if (/^\d+$/.test(rest)) return { program, pane, line: Number(rest) - 1 };
  return pane === "hlo" ? { program, pane, name: rest.replace(/^%/, "") } : null;
}

export function formatAddress({ program, pane, file, line, name }) {
  const start = program ? `${program + 1}/` : "";
  const place = pane === "python" ? `${file}:${line + 1}` : (name ?? String(line + 1));
  return `#${start}${pane}:${encodeURI(place)}`;
}

// The lines of texts that contain what is searched for: text, or a pattern between slashes.
export function search(lines, query) {
  if (!query) return [];
  const found = [];
  const pattern = /^\/(.+)\/?$/.exec(query);
  if (pattern) {
    let regular;
    try {
      regular = new RegExp(pattern[1].replace(/\/$/, ""), "i");
    } catch {
      return [];
    }
    lines.forEach((line, n) => regular.test(line) && found.push(n));
    return found;
  }
  const wanted = query.toLowerCase();
  lines.forEach((line, n) => line.toLowerCase().includes(wanted) && found.push(n));
  return found;
}
