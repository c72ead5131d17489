// Light or dark, as the system has it or as one likes: what is drawn is drawn again then, and when the page gets another width.
"use strict";

function watchTheme(redraw) {
  const root = document.documentElement, button = document.getElementById("theme"), dark = matchMedia("(prefers-color-scheme: dark)");
  const setTheme = (theme) => {
    root.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light" : "Dark";
  };
  setTheme(dark.matches ? "dark" : "light");
  button.hidden = false;
  button.addEventListener("click", () => { setTheme(root.dataset.theme === "dark" ? "light" : "dark"); redraw(); });
  dark.addEventListener("change", (change) => { setTheme(change.matches ? "dark" : "light"); redraw(); });
  // Paper is white.
  let before = null;
  addEventListener("beforeprint", () => { before = root.dataset.theme; if (before === "dark") { setTheme("light"); redraw(); } });
  addEventListener("afterprint", () => { if (before === "dark") { setTheme("dark"); redraw(); } });
  let width = innerWidth, waiting = 0;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(redraw);
  });
}
