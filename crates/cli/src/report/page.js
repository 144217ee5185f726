"use strict";
// Shows the values under the pointer. Everything is read back from the curves themselves, so the page holds no
// figure twice, and it is complete without this script.
(() => {
  const box = document.getElementById("pointer");
  const two = (n) => String(n).padStart(2, "0");
  const whole = (n) => Math.round(n).toLocaleString("en");
  const amount = (n) => (n >= 99.95 || n < 0.005 ? whole(n) : n.toFixed(n >= 9.995 ? 1 : 2));
  const span = (secs) => {
    if (secs < 9.95) return `${Number(secs.toFixed(1))} s`;
    const s = Math.round(secs);
    if (s < 60) return `${s} s`;
    if (s < 3600) return `${Math.floor(s / 60)}m ${two(s % 60)}s`;
    if (s < 86400) return `${Math.floor(s / 3600)}h ${two(Math.floor((s % 3600) / 60))}m`;
    return `${whole(Math.floor(s / 86400))}d ${two(Math.floor((s % 86400) / 3600))}h`;
  };
  const show = {
    amount,
    span,
    moment: (secs) => `after ${span(secs)}`,
    percent: (part) => `${(part * 100).toFixed(1)} %`,
    factor: (n) => `\u00d7 ${amount(n)}`,
  };
  const axis = (text) => {
    const [kind, ...numbers] = text.split(" ");
    const [from, to, start, end, log] = numbers.map(Number);
    const value = (place) => {
      const part = (place - start) / (end - start);
      return log ? from * Math.pow(to / from, part) : from + part * (to - from);
    };
    return { value, words: (place) => show[kind](value(place)), of: show[kind] };
  };
  // A curve's points, without the two that close an area.
  const points = (curve) => {
    const all = Array.from(curve.points, (point) => [point.x, point.y]);
    return curve.tagName === "polygon" ? all.slice(1, -1) : all;
  };
  const nearest = (curve, x) => {
    let [low, high] = [0, curve.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (curve[middle][0] < x) low = middle; else high = middle;
    }
    return x - curve[low][0] < curve[high][0] - x ? curve[low] : curve[high];
  };
  const read = (svg) => ({
    x: axis(svg.dataset.x),
    panels: Array.from(svg.querySelectorAll(".panel"), (panel) => ({
      y: axis(panel.dataset.y),
      name: panel.dataset.panel,
      curves: Array.from(panel.querySelectorAll("[data-name]"), (curve) => ({
        name: curve.dataset.name,
        colour: getComputedStyle(curve).getPropertyValue("--c"),
        stacked: curve.tagName === "polygon",
        points: points(curve),
      })),
    })),
  });
  const add = (parent, tag, text, style) => {
    const child = parent.appendChild(document.createElement(tag));
    child.textContent = text;
    if (style) child.className = style;
    return child;
  };
  const fill = (chart, x) => {
    let place = null;
    box.textContent = "";
    const head = add(box, "b", "");
    for (const panel of chart.panels) {
      const rows = [];
      for (const curve of panel.curves) {
        const point = curve.points.length ? nearest(curve.points, x) : null;
        if (!point || Math.abs(point[0] - x) > 12) continue;
        place = point[0];
        rows.push({ curve, value: panel.y.value(point[1]) });
      }
      // Areas stand on each other: the first reaches as far as all of them together.
      if (panel.name && rows.length) add(box, "em", `${panel.name}: ${panel.y.of(Math.max(0, rows[0].value))}`);
      rows.forEach((row, i) => {
        const inner = row.curve.stacked && rows[i + 1] ? rows[i + 1].value : 0;
        if (row.curve.stacked && (rows.length === 1 || row.value - inner < 0.005)) return;
        const line = add(box, "div", "");
        add(line, "i", "", "dot").style.background = row.curve.colour;
        add(line, "span", row.curve.name);
        add(line, "span", panel.y.of(Math.max(0, row.value - inner)), "amount");
      });
    }
    if (place !== null) head.textContent = chart.x.words(place);
    return place;
  };
  for (const svg of document.querySelectorAll("svg[data-x]")) {
    let chart = null;
    const cross = svg.appendChild(document.createElementNS(svg.namespaceURI, "line"));
    const hide = () => {
      box.style.display = "none";
      cross.setAttribute("class", "");
    };
    cross.setAttribute("y1", 8);
    cross.setAttribute("y2", svg.viewBox.baseVal.height - 44);
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("pointermove", (event) => {
      chart = chart || read(svg);
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      const place = fill(chart, at.x);
      if (place === null) return hide();
      cross.setAttribute("x1", place);
      cross.setAttribute("x2", place);
      cross.setAttribute("class", "cross");
      box.style.display = "block";
      const left = event.clientX + 16;
      const flip = left + box.offsetWidth > window.innerWidth - 8;
      box.style.left = `${flip ? event.clientX - box.offsetWidth - 16 : left}px`;
      const lowest = window.innerHeight - box.offsetHeight - 8;
      box.style.top = `${Math.max(8, Math.min(event.clientY + 14, lowest))}px`;
    });
  }
})();
