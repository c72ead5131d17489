// Puts the page of a search together: the front by whichever figures, and what a point of it is.
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const chart = document.getElementById("front-chart"), details = document.getElementById("point"), choice = document.getElementById("across");
  if (!chart) return;
  const tell = (point) => { details.textContent = point.words; };
  const draw = () => drawFront(chart, data, choice.options.length ? Number(choice.value) : -1, tell);
  choice.append(...data.figures.slice(1).map((figure, number) => new Option(figure.name, number + 1)));
  choice.parentElement.hidden = choice.options.length < 2;
  choice.addEventListener("change", draw);
  const shown = KINDS.filter((kind) => data.points.some((point) => kind.is(point)));
  legend(document.getElementById("kinds"), shown.map((kind) => [kind.name, kind.key]), "dot");
  watchTheme(draw);
  draw();
})();
