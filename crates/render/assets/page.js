// Puts the page of a comparison together: charts as they are opened, the timeline.
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const place = (id) => document.getElementById(id);
  let timeline = null;

  watchTheme(() => {
    document.querySelectorAll("details.charts[open]").forEach((part) => drawCharts(part, data));
    if (timeline) timeline.draw();
  });

  // --- charts ---

  const isRecorded = data.operations.some((operation) => operation.recorded);
  const keys = data.variants.map((name, number) => [name, keyOf(number)]);
  if (place("variants")) legend(place("variants"), isRecorded ? [...keys, [RECORDED, "--fore"]] : keys);
  for (const part of document.querySelectorAll("details.charts")) {
    part.addEventListener("toggle", () => { if (part.open) drawCharts(part, data); });
  }

  // --- the timeline ---

  const choice = place("excerpt");
  if (choice) {
    const devices = place("device");
    const list = () => {
      place("why").replaceChildren();
      timeline.selected = null;
      const entries = timeline.longest(10).map(([number, text]) => {
        const entry = document.createElement("li"), link = document.createElement("button");
        link.type = "button";
        link.textContent = text;
        link.dataset.request = number;
        link.addEventListener("click", () => timeline.explain(number));
        entry.append(link);
        return entry;
      });
      place("longest").replaceChildren(...entries);
      place("longest").parentElement.hidden = entries.length === 0;
    };
    const show = (number) => {
      if (timeline?.chart) timeline.chart.destroy();
      const packed = data.timelines[number];
      timeline = new Timeline(packed, { depth: place("depth"), requests: place("requests"), why: place("why"), jobs: place("jobs"), reasons: place("reasons") });
      devices.replaceChildren(...packed.devices.map((name, device) => new Option(`${device}: ${name}`, device)));
      devices.parentElement.hidden = packed.devices.length < 2;
      timeline.choose(0);
      list();
    };
    choice.append(...data.timelines.map((packed, number) => new Option(data.variants[packed.variant], number)));
    choice.addEventListener("change", () => show(Number(choice.value)));
    devices.addEventListener("change", () => { timeline.choose(Number(devices.value)); list(); });
    place("requests").addEventListener("click", (click) => {
      const number = timeline.at(click.offsetX, click.offsetY);
      if (number != null) timeline.explain(number);
    });
    document.querySelectorAll("[data-zoom]").forEach((one) => one.addEventListener("click", () => timeline.zoom(one.dataset.zoom)));
    // The first that chooses at all; without a scheduler nothing does.
    const first = Math.max(data.timelines.findIndex((packed) => packed.answers.length > 0), 0);
    choice.value = first;
    show(first);
  }
  document.querySelectorAll("details.charts[open]").forEach((part) => drawCharts(part, data));
})();
