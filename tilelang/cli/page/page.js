"use strict";
// Loops, lines and steps that light each other; then the pictures.
(() => {
  const all = (what, inside = document) => [...inside.querySelectorAll(what)];
  const rows = all(".row[data-from]");
  const lineOf = (kernel, number) => document.getElementById(`k${kernel}-l${number}`);
  const linesOf = (row) => {
    const found = [];
    for (let n = +row.dataset.from; n <= +row.dataset.to; n++) {
      const line = lineOf(row.dataset.kernel, n);
      if (line) found.push(line);
    }
    return found;
  };
  const clear = (mark) => all(`.row.${mark}, .line.${mark}, .step.${mark}`).forEach((x) => x.classList.remove(mark));
  const named = (ids) => (ids || "").split(" ").map((id) => document.getElementById(id)).filter((x) => x);
  const light = (row, mark) => [row, ...linesOf(row), ...named(row.dataset.steps)].forEach((x) => x.classList.add(mark));
  const into = (pane, element) => {
    if (!pane || !element) return;
    const a = pane.getBoundingClientRect(), b = element.getBoundingClientRect();
    if (b.top < a.top || b.bottom > a.bottom) pane.scrollTop += b.top - a.top - a.height / 4;
  };
  const tell = (row) => {  // the steps that a row comes from, as links that light what else they became
    const place = row.closest(".kernel").querySelector(".from"), put = (text, steps) => {
      if (!steps.length) return;
      place.append(text);
      steps.forEach((step, n) => {
        const link = document.createElement("button");
        link.type = "button"; link.className = "step"; link.textContent = step.textContent;
        link.addEventListener("click", () => step.click());
        place.append(n ? ", " : "", link);
      });
    };
    place.textContent = "";
    put("From ", named(row.dataset.steps));
    put(place.textContent ? "; divided by " : "Divided by ", named(row.dataset.around));
    if (!place.textContent) place.textContent = "No step is written for it: it keeps the others in order.";
  };
  const show = (chosen, step) => {
    clear("on");
    clear("around");
    chosen.forEach((row) => { row.classList.add("on"); linesOf(row).forEach((line) => line.classList.add("on")); });
    if (step) {
      step.classList.add("on");
      all(".from").forEach((place) => { place.textContent = `Lit: ${step.textContent}`; });
    }
    else chosen.forEach((row) => {
      named(row.dataset.steps).forEach((x) => x.classList.add("on"));
      named(row.dataset.around).forEach((x) => x.classList.add("around"));
      tell(row);
    });
    if (chosen.length) {
      into(chosen[0].closest(".pane"), chosen[0]);
      const line = chosen.map((row) => linesOf(row)[0]).find((x) => x);
      if (line) into(line.closest(".source"), line);
    }
  };
  const rowOf = (kernel, number) => rows
    .filter((r) => r.dataset.kernel === kernel && +r.dataset.from <= number && number <= +r.dataset.to)
    .sort((a, b) => (a.dataset.to - a.dataset.from) - (b.dataset.to - b.dataset.from))[0];
  all(".row").forEach((row) => {
    row.addEventListener("click", () => show([row]));
    row.addEventListener("mouseenter", () => { clear("near"); light(row, "near"); });
    row.addEventListener("mouseleave", () => clear("near"));
  });
  all(".source").forEach((pane) => {
    const kernel = pane.dataset.kernel;
    const choose = (line) => {
      const row = rowOf(kernel, +line.dataset.line);
      if (row) show([row]);
    };
    pane.addEventListener("click", (event) => {
      const line = event.target.closest(".line");
      if (line) choose(line);
    });
    pane.addEventListener("mousemove", (event) => {
      const line = event.target.closest(".line");
      clear("near");
      const row = line && rowOf(kernel, +line.dataset.line);
      if (row) { row.classList.add("near"); named(row.dataset.steps).forEach((x) => x.classList.add("near")); }
    });
    pane.addEventListener("mouseleave", () => clear("near"));
    pane.addEventListener("keydown", (event) => {
      const lines = all(".line", pane), at = lines.findIndex((x) => x.classList.contains("cursor"));
      const move = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key];
      if (move) {
        const next = Math.max(0, Math.min(lines.length - 1, at < 0 ? 0 : at + move));
        lines.forEach((x, n) => x.classList.toggle("cursor", n === next));
        pane.setAttribute("aria-activedescendant", lines[next].id);
        into(pane, lines[next]);
        event.preventDefault();
      } else if (event.key === "Enter" && at >= 0) choose(lines[at]);
    });
  });
  all(".step[data-rows]").forEach((step) => {
    step.addEventListener("click", () => {
      show(named(step.dataset.rows), step);
      const first = document.querySelector(".row.on");
      if (first) first.closest(".kernel").scrollIntoView({ block: "nearest" });
    });
    step.addEventListener("mouseenter", () => { clear("near"); named(step.dataset.rows).forEach((row) => light(row, "near")); });
    step.addEventListener("mouseleave", () => clear("near"));
  });
  const arrive = () => {
    const row = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (row && row.classList.contains("row")) { show([row]); row.focus({ preventScroll: true }); }
  };
  window.addEventListener("hashchange", arrive);

  const clearOfHeader = () => { document.documentElement.style.scrollPaddingTop = `${document.querySelector("header").offsetHeight + 8}px`; };
  clearOfHeader();
  const pictures = all(".picture").map((figure) => new Picture(figure));
  let waiting;
  window.addEventListener("resize", clearOfHeader);
  window.addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(() => pictures.forEach((p) => p.lay()), 100); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => pictures.forEach((p) => p.lay()));
  arrive();
  document.documentElement.dataset.ready = "yes";
})();
