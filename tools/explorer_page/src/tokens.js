// Splits lines into coloured tokens: [start, end, kind].

const PYTHON =
  /(#.*$)|((?:[rbfuRBFU]{1,2})?(?:"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?))|(\b(?:and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield|None|True|False|match|case)\b)|(\b\d[\w.]*\b)|(@[\w.]+)|(\b[A-Za-z_]\w*(?=\())/g;
const JAXPR =
  /(\b(?:let|lambda|in)\b(?=[ ;(]))|(:~?[a-z_]+\d*(?:_\w+)?\[[^\]\s]*\](?:\{[^}\s]*\})?)|(\b[a-z_]\w*(?=\[[^\]]*$|\[[a-z_]+=))|((?<== )[a-z_]\w*)|(\b[a-z_]+(?==))|(-?\b\d[\w.+-]*)/g;
const STABLEHLO =
  /(%[\w#.]+)|("(?:[^"\\]|\\.)*")|(@[\w.$]+)|(\btensor<[^>]*>|\b(?:tuple|token)\b)|(\b(?:stablehlo|func|sdy|chlo|mhlo)\.\w+|\b(?:module|return|call)\b)|(\b[a-z_]+(?= =))|(-?\b\d[\w.+-]*)/g;
const HLO =
  /(%[\w.-]+)|("(?:[^"\\]|\\.)*")|(\b(?:pred|token|[a-z]+\d+[a-z\d]*)\[[\d,]*\](?:\{[^}]*\})?)|(\b(?:ROOT|ENTRY|HloModule)\b)|((?<=[\])}] )[a-z][\w-]*(?=\())|(\b[a-z_]+(?==))|(-?\b\d[\w.+-]*)/g;

const KINDS = {
  python: [PYTHON, ["comment", "string", "keyword", "number", "decorator", "call"]],
  jaxpr: [JAXPR, ["keyword", "type", "operation", "operation", "attribute", "number"]],
  stablehlo: [STABLEHLO, ["name", "string", "symbol", "type", "operation", "attribute", "number"]],
  hlo: [HLO, ["name", "string", "type", "keyword", "operation", "attribute", "number"]],
};

export function tokensOf(pane, line, insideString = false) {
  if (pane === "python" && insideString) return [[0, line.length, "string"]];
  const [pattern, kinds] = KINDS[pane];
  const tokens = [];
  // Longer lines are constants; their rest stays plain.
  const text = line.length > 1000 ? line.slice(0, 1000) : line;
  for (const match of text.matchAll(pattern)) {
    const kind = kinds[match.slice(1).findIndex((group) => group !== undefined)];
    tokens.push([match.index, match.index + match[0].length, kind]);
  }
  return tokens;
}

// For each line of Python, whether it begins inside of a string of several lines.
export function stringLines(lines) {
  const inside = new Uint8Array(lines.length);
  let quote = "";
  lines.forEach((line, n) => {
    inside[n] = quote && !line.includes(quote) ? 1 : quote ? 1 : 0;
    let rest = line;
    for (;;) {
      if (quote) {
        const end = rest.indexOf(quote);
        if (end < 0) return;
        rest = rest.slice(end + 3);
        quote = "";
      }
      const start = rest.match(/^(?:[^"'#]|"(?!"")(?:[^"\\]|\\.)*"|'(?!'')(?:[^'\\]|\\.)*')*?("""|''')/);
      if (!start) return;
      quote = start[1];
      rest = rest.slice(start[0].length);
    }
  });
  return inside;
}

// The word under a column that is a name of a value, such as %fusion.1 or a variable of a jaxpr.
export function nameAt(pane, line, column) {
  if (pane === "python") return null;
  const pattern = pane === "jaxpr" ? /[a-z]+/g : /%[\w.-]+/g;
  for (const match of line.matchAll(pattern)) {
    if (match.index > column) return null;
    if (column < match.index + match[0].length) return match[0];
  }
  return null;
}

// The type of a named value: where it is bound, searched from the line backwards, then everywhere.
export function typeOf(pane, lines, name, from) {
  const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const pattern = {
    jaxpr: new RegExp(`(?:^|[ (])${escaped}:(~?[a-z_]+\\d*(?:_\\w+)?\\[[^\\]\\s]*\\](?:\\{[^}\\s]*\\})?)`),
    stablehlo: new RegExp(`${escaped}(?:: ([^,)]*(?:<[^>]*>)?)|(?::\\d+)? = .*(?:->|:) (.*)$)`),
    hlo: new RegExp(`${escaped} = (\\((?:[^()]|\\([^()]*\\))*\\)|\\S+) `),
  }[pane];
  for (let i = from; i >= 0 && i > from - 5000; i--) {
    const match = lines[i].includes(name) && pattern.exec(lines[i]);
    if (match) return { type: match[1] ?? match[2], line: i };
  }
  for (let i = from + 1; i < Math.min(lines.length, from + 5000); i++) {
    const match = lines[i].includes(name) && pattern.exec(lines[i]);
    if (match) return { type: match[1] ?? match[2], line: i };
  }
  return null;
}
