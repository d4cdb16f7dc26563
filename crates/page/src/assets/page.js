// Draws the charts of a page with uPlot. The numbers are in the page; nothing is fetched.
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
    per_second: (value) => plain(value) + "/s",
    milliseconds: (value) => value >= 1000 ? digits(value / 1000, 2) + " s" : plain(value) + " ms",
    percent: (value) => plain(value) + " %",
    count: plain,
    bytes_per_second: (value) => scaled(value, ["B/s", "kB/s", "MB/s", "GB/s"], 1000),
    bits_per_second: (value) => scaled(value, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"], 1000),
  };
  const clock = (second) => {
    if (second < 60) return digits(second, 3) + " s";
    const whole = Math.floor(second + 5e-4);
    const part = digits(Math.max(0, second - whole), 3).slice(1);
    const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
    const two = (number) => String(number).padStart(2, "0");
    return (h > 0 ? h + ":" + two(m) : m) + ":" + two(s) + part;
  };
  // 10 is 90 %, 100 is 99 %, and so on.
  const percent = (x) => {
    if (x <= 1.0001) return "0 %";
    const nines = Math.max(0, Math.ceil(Math.log10(x) - 2));
    return (100 - 100 / x).toFixed(Math.min(nines, 5)) + " %";
  };
  const power = (x) => Math.abs(Math.log10(x) - Math.round(Math.log10(x))) < 1e-9;

  // Vertical lines where something happened.
  function marks(chart) {
    return {
      hooks: {
        draw: (plot) => {
          const { ctx, bbox } = plot;
          ctx.save();
          ctx.lineWidth = devicePixelRatio;
          ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
          for (const mark of chart.marks) {
            const x = Math.round(plot.valToPos(mark.x, "x", true));
            if (x < bbox.left || x > bbox.left + bbox.width) continue;
            ctx.strokeStyle = css(mark.whose ? "--c" + (mark.whose[1] % 8) : "--bad");
            ctx.beginPath();
            ctx.moveTo(x, bbox.top);
            ctx.lineTo(x, bbox.top + bbox.height);
            ctx.stroke();
          }
          ctx.restore();
        },
      },
    };
  }

  function series(chart, line, show) {
    const stroke = css("--c" + (line.colour % 8));
    const common = { label: line.label, stroke, class: line.quiet ? "quiet" : undefined };
    if (chart.style === "stack") {
      return Object.assign(common, {
        fill: stroke, width: 0, points: { show: false },
        paths: uPlot.paths.bars({ size: [1, Infinity], align: 1, gap: chart.xs.length > 200 ? 0 : 1 }),
        // The part, not the height in the stack.
        value: (_, y, _index, at) => at == null || line.values[at] == null ? "" : show(line.values[at]),
      });
    }
    return Object.assign(common, {
      width: 1.75,
      dash: line.dashed ? [5, 4] : undefined,
      points: { show: chart.xs.length < 3 },
      value: (_, y) => y == null ? "" : show(y),
    });
  }

  // The lines in the order in which they are drawn: of a stack the highest first, lower ones over it.
  const ordered = (chart) => chart.style === "stack" ? chart.lines.slice().reverse() : chart.lines;

  function data(chart) {
    if (chart.style !== "stack") return [chart.xs].concat(chart.lines.map((line) => line.values));
    const below = chart.xs.map(() => 0);
    const sums = chart.lines.map((line) => line.values.map((value, at) => value == null ? null : (below[at] += value)));
    return [chart.xs].concat(sums.reverse());
  }

  function options(chart, width) {
    const show = format[chart.unit];
    const spectrum = chart.x === "spectrum";
    const last = chart.xs[chart.xs.length - 1];
    const axis = { stroke: css("--soft"), grid: { stroke: css("--grid"), width: 1 }, ticks: { stroke: css("--grid"), width: 1 }, font: "12px system-ui, sans-serif" };
    // Counts are whole.
    const whole = chart.unit === "count" ? { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7] } : {};
    return {
      width, height: 260, padding: [null, 20, null, null],
      plugins: [marks(chart)],
      cursor: { drag: { x: true, y: false }, sync: spectrum ? undefined : { key: "group-" + chart.group, setSeries: false } },
      scales: {
        x: spectrum ? { time: false, distr: 3, log: 10, range: () => [1, Math.max(10, last)] } : { time: false },
        y: chart.log ? { distr: 3, log: 10 } : { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.08 : 1] },
      },
      axes: [
        Object.assign({}, axis, { values: (_, splits) => splits.map((x) => x == null ? "" : spectrum ? (power(x) ? percent(x) : "") : clock(x)) }),
        Object.assign({}, axis, whole, { size: (_, values) => 18 + 7 * Math.max(4, ...(values || []).map((text) => text.length)), values: (_, splits) => splits.map((y) => y == null || (chart.log && !power(y)) ? "" : show(y)) }),
      ],
      series: [{ label: spectrum ? "of all" : "at", value: (_, x) => x == null ? "" : spectrum ? percent(x) : clock(x) }]
        .concat(ordered(chart).map((line) => series(chart, line, show))),
    };
  }

  let drawn = [];
  function draw() {
    drawn.forEach((plot) => plot.destroy());
    drawn = charts.map((chart, index) => {
      const place = document.getElementById("chart-" + index);
      return new uPlot(options(chart, place.clientWidth), data(chart), place);
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
