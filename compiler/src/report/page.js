"use strict";
(() => {
  const tip = document.getElementById("tip");
  let marked = null;

  // What a tip says is text from the model: it is only ever set as text.
  function show(target, x, y) {
    if (marked !== target) {
      hide();
      marked = target;
      target.classList.add("here");
      const [title, ...lines] = target.dataset.tip.split("\n");
      const heading = document.createElement("b");
      heading.textContent = title;
      const list = document.createElement("dl");
      for (const line of lines) {
        const [name, value] = line.split("\t");
        const dt = document.createElement("dt"), dd = document.createElement("dd");
        dt.textContent = name;
        raise(dd, value);
        list.append(dt, dd);
      }
      tip.replaceChildren(heading, list);
      tip.hidden = false;
    }
    const left = x + 16 + tip.offsetWidth > innerWidth ? x - tip.offsetWidth - 16 : x + 16;
    const top = Math.min(y + 16, innerHeight - tip.offsetHeight - 8);
    tip.style.transform = `translate(${Math.max(8, left)}px, ${Math.max(8, top)}px)`;
  }

  // Powers of two with raised exponents; everything else is text.
  function raise(element, text) {
    for (const [i, part] of text.split(/2\^([\u2212\d.]+)/).entries()) {
      if (i % 2 === 0) { element.append(part); continue; }
      const exponent = document.createElement("sup");
      exponent.textContent = part;
      element.append("2", exponent);
    }
  }

  function hide() {
    if (marked) marked.classList.remove("here");
    marked = null;
    tip.hidden = true;
  }

  document.addEventListener("pointermove", (event) => {
    const target = event.target.closest?.("[data-tip]");
    if (target && !event.buttons) show(target, event.clientX, event.clientY);
    else hide();
  });
  document.addEventListener("pointerleave", hide);
  // A finger does not hover: a tap shows what a pointer would, and a tap elsewhere hides it.
  document.addEventListener("click", (event) => {
    if (event.pointerType !== "touch") return;
    const target = event.target.closest?.("[data-tip]");
    if (target) show(target, event.clientX, event.clientY);
    else hide();
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });

  // N and P walk through the boxes or columns of the picture that has the focus.
  function walk(svg, step) {
    const all = [...svg.querySelectorAll("[data-tip]")];
    const next = all[(all.indexOf(marked) + step + all.length) % all.length];
    const box = next.getBoundingClientRect();
    show(next, box.right - 8, Math.min(box.bottom - 8, innerHeight / 2));
  }

  // Moving and scaling changes the view box, so the picture stays sharp and its size on the page does not change.
  const views = new Map();
  function view(svg) {
    if (!views.has(svg)) {
      const { x, y, width, height } = svg.viewBox.baseVal;
      views.set(svg, { home: [x, y, width, height], now: [x, y, width, height] });
    }
    return views.get(svg);
  }
  function look(svg, box) {
    view(svg).now = box;
    svg.setAttribute("viewBox", box.map((v) => v.toFixed(2)).join(" "));
  }
  // The point (dx, dy) stays where it is, in pixels from the middle.
  function zoom(svg, factor, dx = 0, dy = 0) {
    const { now: [x, y, w, h], home } = view(svg);
    const wide = Math.min(home[2] * 2, Math.max(home[2] / 40, w / factor));
    const part = wide / w, px = x + w / 2 + dx * unit(svg), py = y + h / 2 + dy * unit(svg);
    look(svg, [px - (px - x) * part, py - (py - y) * part, wide, h * part]);
  }
  function move(svg, dx, dy) {
    const { now: [x, y, w, h] } = view(svg);
    look(svg, [x + dx, y + dy, w, h]);
  }
  // Units of the picture for one pixel; the picture fits the smaller side.
  function unit(svg) {
    const { now: [, , w, h] } = view(svg);
    return Math.max(w / svg.clientWidth, h / svg.clientHeight);
  }

  // In a small window a drawing begins at its first box instead of fitting as a whole.
  function legible(svg) {
    const seen = views.has(svg);
    if (seen || unit(svg) < 2) return;
    svg.classList.add("large");
    look(svg, [view(svg).home[0], view(svg).home[1], svg.clientWidth * 1.3, svg.clientHeight * 1.3]);
  }

  for (const svg of document.querySelectorAll("svg.graph")) {
    svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const box = svg.getBoundingClientRect();
      zoom(svg, Math.exp(-event.deltaY / 240), event.clientX - box.left - box.width / 2, event.clientY - box.top - box.height / 2);
    }, { passive: false });
    svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      svg.setPointerCapture(event.pointerId);
      svg.classList.add("moving");
    });
    svg.addEventListener("pointermove", (event) => {
      if (svg.classList.contains("moving")) move(svg, -event.movementX * unit(svg), -event.movementY * unit(svg));
    });
    for (const end of ["pointerup", "pointercancel"]) {
      svg.addEventListener(end, () => svg.classList.remove("moving"));
    }
    svg.addEventListener("keydown", (event) => {
      const step = 60 * unit(svg);
      const actions = {
        "+": () => zoom(svg, 1.3), "=": () => zoom(svg, 1.3), "-": () => zoom(svg, 1 / 1.3),
        "0": () => look(svg, view(svg).home),
        ArrowLeft: () => move(svg, -step, 0), ArrowRight: () => move(svg, step, 0),
        ArrowUp: () => move(svg, 0, -step), ArrowDown: () => move(svg, 0, step),
      };
      if (event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return;
      event.preventDefault();
      actions[event.key]();
    });
  }
  for (const svg of document.querySelectorAll("svg.graph, svg.chart")) {
    svg.addEventListener("keydown", (event) => {
      if (event.key === "n" || event.key === "p") walk(svg, event.key === "n" ? 1 : -1);
    });
    svg.addEventListener("blur", hide);
  }

  const tabs = [...document.querySelectorAll("[role=tab]")];
  const stage = (tab) => document.getElementById(tab.getAttribute("aria-controls"));
  function select(tab, focus) {
    for (const other of tabs) {
      const on = other === tab;
      other.setAttribute("aria-selected", on);
      other.tabIndex = on ? 0 : -1;
      stage(other).hidden = !on;
    }
    hide();
    legible(stage(tab).querySelector("svg.graph"));
    if (focus) tab.focus();
  }
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => select(tab));
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      select(tabs[(to + tabs.length) % tabs.length], true);
    });
  });
  for (const button of document.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => {
      const svg = document.querySelector(".stage:not([hidden]) svg.graph");
      if (button.dataset.zoom === "fit") look(svg, view(svg).home);
      else zoom(svg, button.dataset.zoom === "in" ? 1.4 : 1 / 1.4);
    });
  }
  legible(document.querySelector(".stage:not([hidden]) svg.graph"));
  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
    for (const [svg, { home }] of views) look(svg, home);
  });
})();
