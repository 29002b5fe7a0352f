// The sheet of costs: what the program needs in all, the lines and operations that need most, and collectives.

import { el, svg } from "./dom.js";
import { baseName, bytes, count, flops, percent, seconds } from "./format.js";

export function costSheet(program, actions) {
  const { data } = program;
  const sheet = el("dialog", { class: "sheet costs", "aria-label": "Costs" });
  sheet.append(
    el("header", {}, el("h2", {}, `Costs of ${data.name}`), el("span", { class: "grow" }),
      el("button", { class: "quiet", onclick: () => sheet.close() }, "Close")),
  );
  const body = el("div", { class: "columns" });
  sheet.append(body);
  if (!data.cost) {
    body.append(el("p", {}, data.hlo.missing || "The program was not compiled, so nothing is known of its costs."));
    return sheet;
  }
  const total = data.cost.seconds || 1;
  body.append(whole(data));
  const close = (action) => () => { sheet.close(); action(); };
  const lines = [...data.lines].sort((a, b) => b[4] - a[4]).slice(0, 25);
  body.append(
    table("Lines", ["line", "source", "flops", "bytes", "share"], lines.map(([file, line, f, b, s]) => ({
      cells: [`${baseName(program.files[file].name)}:${line}`, (program.files[file].lines?.[line - 1] ?? "").trim(), flops(f), bytes(b), s / total],
      pick: close(() => actions.goTo({ pane: "python", file, line: line - 1 })),
    }))),
  );
  if (data.memory) body.append(...memory(program, data.memory, close, actions));
  const own = [...program.instructionByLine.values()].filter((i) => i.seconds && !insideFusion(program, i));
  own.sort((a, b) => b.seconds - a.seconds);
  body.append(
    table("Operations", ["name", "kind", "flops", "bytes", "share"], own.slice(0, 25).map((i) => ({
      cells: [i.name, i.opcode, flops(i.flops), bytes(i.bytes), i.seconds / total],
      pick: close(() => actions.goTo({ pane: "hlo", line: i.line })),
    }))),
  );
  if (data.collectives.length) {
    body.append(
      table("Collectives", ["kind", "bytes", "times", "line"], data.collectives.map((c) => ({
        cells: [c.kind, bytes(c.bytes), `${c.at_least ? "at least " : ""}${c.times}`, c.file ? `${baseName(c.file)}:${c.line}` : "—"],
      }))),
    );
  }
  return sheet;
}

function insideFusion(program, instruction) {
  program.fused ??= new Set(
    program.data.hlo.instructions.filter((i) => i[2] === "fusion").flatMap((i) => {
      const match = /\bcalls=%?([\w.-]+)/.exec(program.data.hlo.lines[i[0]]);
      return match ? [match[1]] : [];
    }),
  );
  return program.fused.has(program.data.hlo.computations[instruction.computation].name);
}

function whole(data) {
  const { cost, device } = data;
  const intensity = cost.bytes ? cost.flops / cost.bytes : 0;
  const facts = [
    ["device", device.name + (device.assumed ? " (peaks assumed)" : "")],
    ["operations", flops(cost.flops)],
    ["memory traffic", bytes(cost.bytes)],
    ["time at best", seconds(cost.seconds)],
    ["intensity", `${Number(intensity.toPrecision(3))} flop/byte`],
    ["peak", `${count(device.flops)}flop/s, ${bytes(device.bandwidth)}/s`],
  ];
  const linked = Object.entries(data.coverage).reduce((sum, [, n]) => sum + n, 0);
  const lost = Object.entries(data.coverage).filter(([how]) => how.startsWith("none")).reduce((sum, [, n]) => sum + n, 0);
  if (linked) facts.push(["linked to lines", `${percent((linked - lost) / linked)} of ${linked} instructions`]);
  const list = el("dl", {});
  for (const [name, value] of facts) list.append(el("dt", {}, name), el("dd", {}, value));
  return el("section", {}, el("h3", {}, "In all"), list, roofline(cost, device, intensity));
}

// The bytes in use over the schedule, the fullest step marked, and the arrays that are there.
function memory(program, memory, close, actions) {
  const { timeline, fullest } = memory;
  const lineAction = (file, line) => {
    const number = program.files.findIndex((f) => f.name === file);
    return number < 0 ? null : close(() => actions.goTo({ pane: "python", file: number, line: line - 1 }));
  };
  const of = memory.capacity ? ` of ${bytes(memory.capacity)}: ${memory.peak <= memory.capacity ? "fits" : "does not fit"}` : "";
  const parts = ["arguments", "results", "temporaries", "code"].filter((kind) => memory[kind]).map((kind) => `${kind} ${bytes(memory[kind])}`);
  const section = el("section", {}, el("h3", {}, "Memory over the schedule"), el("p", {}, `${bytes(memory.peak)}${of} — ${parts.join(", ")}`));
  if (timeline.length > 1) section.append(chart(program, memory, lineAction));
  const place = memory.places[memory.steps[fullest]];
  const rows = memory.buffers.map((b) => {
    const instruction = program.instructionByName.get(b.name);
    const toLine = b.file && lineAction(b.file, b.line);
    return {
      cells: [b.name, b.type, b.kind, bytes(b.bytes), b.file ? `${baseName(b.file)}:${b.line}` : "—"],
      pick: instruction ? close(() => actions.goTo({ pane: "hlo", line: instruction.line })) : toLine,
    };
  });
  const at = place ? ` in ${baseName(place[0])}:${place[1]}` : "";
  const arrays = table(`Arrays in memory when it is fullest, step ${fullest + 1} of ${timeline.length}${at}`,
    ["array", "type", "kind", "bytes", "line"], rows);
  if (memory.left) arrays.append(el("p", {}, `and ${memory.left} smaller ones`));
  return [section, arrays];
}

function chart(program, { timeline, fullest, steps, places }, lineAction) {
  const [width, height] = [700, 130];
  const most = Math.max(...timeline, 1);
  const groups = Math.min(timeline.length, width);
  const tops = Array.from({ length: groups }, (_, i) => {
    const [start, end] = [Math.floor((i * timeline.length) / groups), Math.floor(((i + 1) * timeline.length) / groups)];
    let top = 0;
    for (let n = start; n < Math.max(end, start + 1); n++) top = Math.max(top, timeline[n]);
    return top;
  });
  const x = (i) => (i / groups) * width;
  const y = (value) => height - (value / most) * (height - 18);
  const path = tops.map((top, i) => `L${x(i).toFixed(1)} ${y(top).toFixed(1)} L${x(i + 1).toFixed(1)} ${y(top).toFixed(1)}`).join(" ");
  const at = ((fullest + 0.5) / timeline.length) * width;
  const label = svg("text", { x: Math.min(Math.max(at, 40), width - 40), y: 11, class: "tick", "text-anchor": "middle" });
  label.textContent = bytes(most);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "timeline", role: "img",
    "aria-label": `Memory in ${timeline.length} steps, ${bytes(most)} at most` },
    svg("path", { class: "area", d: `M0 ${height} ${path} L${width} ${height} z` }),
    svg("path", { class: "peak", d: `M${at} 15 V${height}` }), label);
  const stepAt = (event) => {
    const box = drawing.getBoundingClientRect();
    return Math.max(0, Math.min(timeline.length - 1, Math.floor(((event.clientX - box.left) / box.width) * timeline.length)));
  };
  const about = el("p", { class: "about" }, "Point at the picture to see a step, click to go to its line.");
  drawing.addEventListener("mousemove", (event) => {
    const step = stepAt(event);
    const place = places[steps[step]];
    about.textContent = `step ${step + 1} of ${timeline.length}: ${bytes(timeline[step])}${place ? `, ${baseName(place[0])}:${place[1]}` : ""}`;
  });
  drawing.addEventListener("click", (event) => {
    const place = places[steps[stepAt(event)]];
    if (place) lineAction(...place)?.();
  });
  return el("div", {}, drawing, about);
}

// The roof of the device over intensity, both axes logarithmic, and the program under it.
function roofline(cost, device, intensity) {
  const [width, height, left, bottom] = [360, 190, 46, 28];
  const ridge = device.flops / device.bandwidth;
  const [x0, x1] = [Math.log10(Math.min(ridge / 100, Math.max(intensity, 1e-3) / 3)), Math.log10(Math.max(ridge * 30, intensity * 3))];
  const y1 = Math.log10(device.flops) + 0.3;
  const y0 = Math.min(Math.log10(device.bandwidth) + x0, y1 - 2);
  const x = (value) => left + ((Math.log10(value) - x0) / (x1 - x0)) * (width - left - 10);
  const y = (value) => 8 + ((y1 - Math.log10(value)) / (y1 - y0)) * (height - bottom - 8);
  const low = 10 ** x0;
  const rate = cost.seconds ? cost.flops / cost.seconds : 0;
  const drawing = svg("svg", { width, height, class: "roofline", role: "img", "aria-label":
    `Roofline: ${Number(intensity.toPrecision(3))} flop/byte, bound by ${intensity < ridge ? "memory" : "computing"}` });
  drawing.append(
    svg("path", { class: "axis", d: `M${left} 8 V${height - bottom} H${width - 8}` }),
    svg("path", { class: "roof", d: `M${x(low)} ${y(device.bandwidth * low)} L${x(ridge)} ${y(device.flops)} H${width - 10}` }),
  );
  for (let power = Math.ceil(x0); power <= x1; power += Math.max(1, Math.round((x1 - x0) / 5))) {
    const tick = svg("text", { x: x(10 ** power), y: height - bottom + 15, class: "tick", "text-anchor": "middle" });
    tick.textContent = `${Number((10 ** power).toPrecision(1))}`;
    drawing.append(tick);
  }
  const name = svg("text", { x: (width + left) / 2, y: height - 2, class: "tick", "text-anchor": "middle" });
  name.textContent = "flop/byte";
  const top = svg("text", { x: width - 12, y: y(device.flops) - 5, class: "tick", "text-anchor": "end" });
  top.textContent = `${count(device.flops)}flop/s`;
  drawing.append(name, top);
  if (intensity && rate) {
    drawing.append(svg("circle", { class: "spot", cx: x(intensity), cy: y(Math.max(rate, 10 ** y0)), r: 5 }));
  }
  return drawing;
}

function table(title, heads, rows) {
  const isNumber = (head) => /flops|bytes|times/.test(head);
  const made = el("table", {}, el("thead", {}, el("tr", {}, ...heads.map((h) => el("th", { scope: "col", class: isNumber(h) ? "right" : "text" }, h)))));
  const body = el("tbody", {});
  for (const { cells, pick } of rows) {
    const row = el("tr", {});
    cells.forEach((cell, i) => {
      if (heads[i] === "share") {
        const bar = el("span", { class: "bar" });
        bar.style.width = `${Math.min(100, 100 * cell)}%`;
        row.append(el("td", { class: "share" }, bar, el("span", {}, percent(cell))));
      } else if (i === 0 && pick) row.append(el("td", {}, el("button", { class: "link", onclick: pick }, cell)));
      else row.append(el("td", { class: isNumber(heads[i]) ? "right" : "text", title: cell }, cell));
    });
    body.append(row);
  }
  made.append(body);
  return el("section", {}, el("h3", {}, title), rows.length ? made : el("p", {}, "none"));
}
