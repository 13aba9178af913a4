// What the page does besides being read: rows of one line light up together, and a row opens its line.
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const lines = (element) => (element.dataset.lines || "").split(" ").filter(Boolean);
  for (const article of all("article")) {
    const rows = all("[data-lines]", article);
    const light = (keys) => rows.forEach((row) => row.classList.toggle("lit", lines(row).some((key) => keys.includes(key))));
    for (const row of rows) {
      const target = row.matches("details") ? row.querySelector("summary") : row;
      target.addEventListener("mouseenter", () => light(lines(row)));
      target.addEventListener("mouseleave", () => light([]));
    }
    for (const line of all("details.line", article)) {
      line.addEventListener("toggle", () => {
        if (!line.open) return;
        for (const stage of all(".stage", article)) {
          const first = all(".row", stage).find((row) => lines(row).includes(line.dataset.lines));
          if (first && stage.offsetParent) stage.scrollTo({ top: first.offsetTop - stage.offsetTop - 60, behavior: "smooth" });
        }
      });
    }
    for (const link of all(".row > a", article)) {
      link.addEventListener("click", () => {
        const line = document.getElementById(link.hash.slice(1));
        if (line && line.matches("details")) line.open = true;
      });
    }
    for (const [which, open] of [[".open", true], [".close", false]]) {
      all(".tools " + which, article).forEach((button) =>
        button.addEventListener("click", () => all("details.line", article).forEach((line) => (line.open = open))));
    }
    all(".tools", article).forEach((tools) => (tools.hidden = false));
  }
  const measure = () =>
    all(".source").forEach((source) => source.style.setProperty("--source", source.clientWidth + "px"));
  addEventListener("resize", measure);
  measure();
})();
