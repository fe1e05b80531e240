// What a page does beside being read: it asks for itself again when its view has changed, and draws charts.
// Without this file every page still works; it is then as old as it was loaded.
"use strict";

(() => {
  const root = document.documentElement;
  const THEME = "tanist-theme";

  // Light, dark, or as the machine is set.
  const theme = localStorage.getItem(THEME);
  if (theme) root.dataset.theme = theme;

  function nextTheme() {
    const isDark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
    localStorage.setItem(THEME, root.dataset.theme);
    drawAll();
  }

  // How all views look by now, as the server said last. The page itself says how its view looked when it was made.
  let told = null;

  function isOld() {
    const live = document.getElementById("live");
    if (live === null || told === null) return false;
    const digests = live.dataset.view.split(" ").map((view) => told[view] || "");
    return digests.join(" ") !== live.dataset.digest;
  }

  function isFilledIn(field) {
    if (field.type === "hidden") return false;
    if (field.matches("select")) {
      const first = [...field.options].findIndex((each) => each.defaultSelected);
      return field.selectedIndex !== Math.max(first, 0);
    }
    return field.value !== field.defaultValue || field.checked !== field.defaultChecked;
  }

  function isBusy() {
    // Whoever fills in a form or reads a selection is not disturbed; the page is asked for when he is done.
    const fields = [...document.querySelectorAll("#live form :is(input, select, textarea)")];
    const selection = getSelection();
    return (
      fields.some((field) => field === document.activeElement || isFilledIn(field)) ||
      (selection && !selection.isCollapsed)
    );
  }

  function refreshIfOld() {
    if (isOld() && !isBusy()) document.body.dispatchEvent(new CustomEvent("view-changed"));
  }

  function listen() {
    const dot = document.getElementById("dot");
    const live = document.getElementById("live");
    if (!live) return;
    const source = new EventSource(`/events?views=${encodeURIComponent(live.dataset.view)}`);
    source.addEventListener("views", (event) => {
      told = JSON.parse(event.data);
      if (dot) {
        dot.className = "dot on";
        dot.title = "live";
      }
      refreshIfOld();
      drawAll();
    });
    source.addEventListener("logged-out", () => {
      source.close();
      location.reload();
    });
    source.addEventListener("error", () => {
      if (dot) {
        dot.className = "dot off";
        dot.title = "the console does not answer; this page is old";
      }
    });
    addEventListener("beforeunload", () => source.close());
  }

  // Also after an answer that did not come, or that was overtaken by the next look.
  setInterval(refreshIfOld, 1000);

  // What was opened stays open when the page is put anew.
  let opened = [];
  document.addEventListener("htmx:beforeSwap", (event) => {
    // It was asked for before he began.
    if (isBusy()) event.detail.shouldSwap = false;
    opened = [...document.querySelectorAll("#live details[open][id]")].map((each) => each.id);
  });
  document.addEventListener("htmx:afterSwap", () => {
    for (const id of opened) {
      const found = document.getElementById(id);
      if (found) found.open = true;
    }
  });

  // Charts.
  const charts = new Map();

  // A canvas takes no light-dark(): an element that has the colour says which of the two it is now.
  function color(name) {
    const probe = document.createElement("span");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  }

  function draw(place, history) {
    const wanted = place.dataset.columns.split("|");
    const names = Object.keys(history.columns).filter((name) =>
      wanted.some((prefix) => name === prefix || (prefix.endsWith("*") && name.startsWith(prefix.slice(0, -1)))),
    );
    const empty = place.parentElement.querySelector(".empty");
    if (empty) empty.hidden = names.length > 0 && history.timesS.length > 1;
    if (names.length === 0) return;
    const data = [history.timesS, ...names.map((name) => history.columns[name])];
    const key = names.join("|") + (root.dataset.theme || "");
    const known = charts.get(place);
    if (known && known.key === key) {
      known.plot.setData(data);
      return;
    }
    if (known) known.plot.destroy();
    const axis = {
      stroke: color("--quiet"),
      grid: { stroke: color("--line"), width: 1 },
      ticks: { stroke: color("--line"), width: 1 },
      font: "12px system-ui",
    };
    const palette = [color("--series-1"), color("--series-2"), color("--good"), color("--bad")];
    const prefix = wanted.length === 1 && wanted[0].endsWith("*") ? wanted[0].slice(0, -1) : "";
    const options = {
      width: place.clientWidth || 600,
      height: 140,
      cursor: { y: false },
      legend: { live: false },
      axes: [
        {
          ...axis,
          space: 90,
          values: (_plot, times) => times.map((at) => new Date(at * 1000).toISOString().slice(11, 19)),
        },
        { ...axis, size: 60 },
      ],
      scales: { y: { range: (_plot, low, high) => [0, Math.max(1, high || 0) * 1.1] } },
      series: [
        {},
        ...names.map((name, index) => ({
          label: name.slice(prefix.length) || name,
          stroke: palette[index % palette.length],
          width: 1.5,
          points: { show: false },
        })),
      ],
    };
    charts.set(place, { key, plot: new uPlot(options, data, place) });
  }

  async function drawAll() {
    const places = document.querySelectorAll(".chart");
    if (places.length === 0) return;
    try {
      const answer = await fetch("/api/v1/history", { headers: { "X-Live": "1" } });
      if (!answer.ok) return;
      const history = await answer.json();
      for (const place of places) draw(place, history);
    } catch {
      // The dot says that the console does not answer.
    }
  }

  addEventListener("resize", () => {
    for (const [place, known] of charts) known.plot.setSize({ width: place.clientWidth, height: 140 });
  });

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    if (button) {
      button.hidden = false;
      button.addEventListener("click", nextTheme);
    }
    listen();
    drawAll();
  });
})();
