// Put at the end of a page of net_bench --report by report_test: which series are on the canvases, in which colours.
"use strict";
{
  // How near a pixel's colour is to "#rrggbb".
  const near = (data, at, colour) => [1, 3,
    5].every((start, part) => Math.abs(data[at + part] - parseInt(colour.slice(start, start + 2), 16)) < 24);
  const looked = netBenchCharts.map(({ chart, plot }) => {
    const canvas = plot.ctx.canvas;
    const data = plot.ctx.getImageData(0, 0, canvas.width, canvas.height).data;
    const at = (x, y) => 4 * (Math.round(y) * canvas.width + Math.round(x));
    const series = chart.series.map((one) => {
      const colour = colours()[one.style];
      const places = one.values.map((value, index) => value === null
        ? null : [plot.valToPos(index, "x", true), plot.valToPos(value, "y", true)]);
      const marks = places.filter((place) => place && near(data, at(...place), colour)).length;
      let line = 0;
      for (let index = 1; index < places.length; ++index) {
        for (let step = 1; step < 100; ++step) {
          const between = [0, 1].map((part) => places[index - 1][part]
            + (step / 100) * (places[index][part] - places[index - 1][part]));
          line += near(data, at(...between), colour);
        }
      }
      return { name: one.name, points: one.values.length, marks, line: line / 99 / (places.length - 1) };
    });
    return { title: chart.title, series };
  });
  const text = (element) => element.textContent;
  document.body.append(Object.assign(document.createElement("pre"), { id: "looked", textContent: JSON.stringify({
    charts: looked, dark: dark.matches, faults, background: getComputedStyle(document.body).backgroundColor,
    headings: [...document.querySelectorAll("h2, h3")].map(text), cells: document.querySelectorAll("td").length,
    ratios: [...document.querySelectorAll("table.figures td")].map(text)
      .filter((cell) => cell === "2.50?").length }) }));
}
