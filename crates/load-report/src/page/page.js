// Draws the charts of a report. The numbers are made by Weir (report/charts); nothing is fetched.
(function () {
  "use strict";
  const charts = JSON.parse(document.getElementById("charts-data").textContent);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const digits = (value, most) => value.toLocaleString("en", { maximumFractionDigits: most });
  const plain = (value) => digits(value, Math.abs(value) < 1 ? 3 : Math.abs(value) < 100 ? 1 : 0);
  const scaled = (value, units, base) => {
    let step = 0;
    while (Math.abs(value) >= base && step < units.length - 1) { value /= base; step += 1; }
    return plain(value) + " " + units[step];
  };
  const format = {
    per_s: (value) => plain(value) + "/s",
    ms: (value) => value >= 1000 ? digits(value / 1000, 2) + " s" : plain(value) + " ms",
    percent: (value) => plain(value) + " %",
    count: plain,
    bytes_per_s: (value) => scaled(value, ["B/s", "kB/s", "MB/s", "GB/s"], 1000),
  };
  const clock = (second) => {
    const [h, m, s] = [Math.floor(second / 3600), Math.floor(second / 60) % 60, Math.round(second) % 60];
    const two = (number) => String(number).padStart(2, "0");
    if (h > 0) return h + ":" + two(m) + ":" + two(s);
    return second >= 60 ? m + ":" + two(s) : s + " s";
  };
  // 10 is 90 %, 100 is 99 %, and so on.
  const percent = (x) => {
    if (x <= 1.0001) return "0 %";
    const nines = Math.max(0, Math.ceil(Math.log10(x) - 2));
    return (100 - 100 / x).toFixed(Math.min(nines, 5)) + " %";
  };
  const power = (x) => Math.abs(Math.log10(x) - Math.round(Math.log10(x))) < 1e-9;

  function options(chart, width) {
    const show = format[chart.unit];
    const spectrum = chart.x === "spectrum";
    const axis = { stroke: css("--soft"), grid: { stroke: css("--grid"), width: 1 }, ticks: { stroke: css("--grid"), width: 1 }, font: "12px system-ui, sans-serif" };
    return {
      width, height: 260, padding: [null, 20, null, null],
      cursor: { drag: { x: true, y: false }, sync: spectrum ? undefined : { key: "time", setSeries: false } },
      scales: {
        x: spectrum ? { time: false, distr: 3, log: 10, range: () => [1, Math.max(10, chart.xs[chart.xs.length - 1])] } : { time: false },
        y: chart.log ? { distr: 3, log: 10 } : { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.08 : 1] },
      },
      axes: [
        Object.assign({}, axis, { values: (_, splits) => splits.map((x) => x == null ? "" : spectrum ? (power(x) ? percent(x) : "") : clock(x)) }),
        Object.assign({}, axis, { size: 72, values: (_, splits) => splits.map((y) => y == null || (chart.log && !power(y)) ? "" : show(y)) }),
      ],
      series: [{ label: spectrum ? "of all" : "at", value: (_, x) => x == null ? "" : spectrum ? percent(x) : clock(x) }].concat(
        chart.lines.map((line) => ({
          label: line.label,
          stroke: css("--c" + (line.colour % 8)),
          width: 1.75,
          dash: line.dashed ? [5, 4] : undefined,
          points: { show: chart.xs.length < 3 },
          value: (_, y) => y == null ? "" : show(y),
        }))),
    };
  }

  let drawn = [];
  function draw() {
    drawn.forEach((plot) => plot.destroy());
    drawn = charts.map((chart, index) => {
      const place = document.getElementById("chart-" + index);
      return new uPlot(options(chart, place.clientWidth), [chart.xs].concat(chart.lines.map((line) => line.values)), place);
    });
    document.documentElement.dataset.drawn = String(drawn.length);
  }
  function fit() {
    drawn.forEach((plot, index) => {
      const width = document.getElementById("chart-" + index).clientWidth;
      if (width !== plot.width) plot.setSize({ width, height: plot.height });
    });
  }
  draw();
  addEventListener("resize", fit);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
})();
