// Draws the charts of a page with uPlot, and writes the figures of their legends. The numbers are in the page;
// nothing is fetched.
(function () {
  "use strict";
  const charts = JSON.parse(document.getElementById("charts-data").textContent);
  const HEIGHT = 210;
  const WHOLE = [1, 10, 100, 1e3, 1e4, 1e5, 1e6].flatMap((power) => [power, 2 * power, 5 * power]);
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
  const place = { time: clock, spectrum: percent, rate: (x) => plain(x) + "/s" };

  // The browser's value of a custom property that is a colour.
  function css(name) {
    const probe = document.createElement("i");
    probe.style.color = "var(" + name + ")";
    document.body.append(probe);
    const value = getComputedStyle(probe).color;
    probe.remove();
    return value;
  }

  // 1, 2 and 5 of each power of ten within a logarithmic scale; of many powers only these themselves.
  function steps(low, high) {
    if (!(low > 0 && high < Infinity)) return [];
    const all = [];
    const few = Math.log10(high / low) < 3;
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1)
      for (const digit of few ? [1, 2, 5] : [1]) all.push(digit * 10 ** power);
    return all.filter((value) => value >= low * 0.999 && value <= high * 1.001);
  }

  function line(plot, from, to, stroke) {
    const { ctx } = plot;
    ctx.strokeStyle = stroke;
    ctx.beginPath();
    ctx.moveTo(from[0], from[1]);
    ctx.lineTo(to[0], to[1]);
    ctx.stroke();
  }

  // Vertical lines where something happened, horizontal ones for bounds, and points that have a shape.
  function drawn(chart, plot) {
    const { ctx, bbox } = plot;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.lineWidth = ratio;
    ctx.setLineDash([3 * ratio, 3 * ratio]);
    for (const mark of chart.marks) {
      const x = Math.round(plot.valToPos(mark.x, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      line(plot, [x, bbox.top], [x, bbox.top + bbox.height], css(mark.whose ? "--c" + (mark.whose[1] % 8) : "--dim"));
    }
    ctx.font = 11 * ratio + "px " + getComputedStyle(document.body).fontFamily;
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    for (const { y: value, text } of chart.levels) {
      const y = Math.round(plot.valToPos(value, "y", true));
      if (!(y >= bbox.top && y <= bbox.top + bbox.height)) continue;
      line(plot, [bbox.left, y], [bbox.left + bbox.width, y], css("--dim"));
      ctx.fillStyle = css("--dim");
      ctx.fillText(text, bbox.left + 6 * ratio, y - 6 * ratio);
    }
    ctx.setLineDash([]);
    ctx.lineWidth = 2 * ratio;
    for (const { shape, colour, values } of chart.lines) {
      if (!shape) continue;
      ctx.strokeStyle = ctx.fillStyle = css("--c" + (colour % 8));
      const size = 4 * ratio;
      values.forEach((value, at) => {
        if (value == null) return;
        const [x, y] = [plot.valToPos(chart.xs[at], "x", true), plot.valToPos(value, "y", true)];
        ctx.beginPath();
        if (shape === "cross") {
          ctx.moveTo(x - size, y - size); ctx.lineTo(x + size, y + size);
          ctx.moveTo(x + size, y - size); ctx.lineTo(x - size, y + size);
        } else {
          ctx.arc(x, y, shape === "ring" ? 1.6 * size : size, 0, 7);
        }
        if (shape === "dot") ctx.fill(); else ctx.stroke();
      });
    }
    ctx.restore();
  }

  function series(chart, line) {
    const stroke = css("--c" + (line.colour % 8));
    if (line.shape) return { stroke, paths: () => null, points: { show: false } };
    if (chart.style === "stack") {
      return {
        stroke, fill: stroke, width: 0, points: { show: false },
        paths: uPlot.paths.bars({ size: [1, Infinity], align: 1, gap: chart.xs.length > 200 ? 0 : 1 }),
      };
    }
    return { stroke, width: 1.5, dash: line.dashed ? [5, 4] : undefined, points: { show: chart.xs.length < 3 } };
  }

  // The lines in the order in which they are drawn: of a stack the highest first, lower ones over it.
  const ordered = (chart) => chart.style === "stack" ? chart.lines.slice().reverse() : chart.lines;

  function data(chart) {
    if (chart.style !== "stack") return [chart.xs].concat(chart.lines.map((line) => line.values));
    const below = chart.xs.map(() => 0);
    const sums = chart.lines.map((line) => line.values.map((value, at) => value == null ? null : (below[at] += value)));
    return [chart.xs].concat(sums.reverse());
  }

  // From the least to the most of a line.
  function span(chart, line) {
    const known = line.values.filter((value) => value != null);
    if (!known.length) return "not measured";
    const show = format[chart.unit];
    const [least, most] = [show(Math.min(...known)), show(Math.max(...known))];
    return least === most ? most : least + " to " + most;
  }

  // What of the chart is before `x`: its whole span.
  function extent(chart) {
    const last = chart.end ?? chart.xs[chart.xs.length - 1];
    return chart.x === "time" && last > 0 ? clock(chart.xs[0]) + " to " + clock(last) : "all";
  }

  // The figures at the cursor; without one, what each line spans.
  function tell(chart, index, at) {
    const [first, ...entries] = document.getElementById("legend-" + index).children;
    first.textContent = at == null ? extent(chart) + ":" : "at " + place[chart.x](chart.xs[at]) + ":";
    chart.lines.filter((line) => !line.quiet).forEach((line, place) => {
      const value = at == null ? null : line.values[at];
      entries[place].lastElementChild.textContent =
        at == null ? span(chart, line) : value == null ? "–" : format[chart.unit](value);
    });
  }

  // What stands for the drawing where it is not seen.
  function alternative(chart) {
    const lines = chart.lines.filter((line) => !line.quiet).map((line) => line.label + " " + span(chart, line));
    const levels = chart.levels.map(({ text }) => text);
    return chart.title + ", " + extent(chart) + ": " + lines.concat(levels).join("; ");
  }

  function scales(chart) {
    const last = chart.xs[chart.xs.length - 1];
    const levels = chart.levels.map(({ y }) => y);
    const logarithmic = (_, low, high) => [Math.min(low ?? 1, ...levels) / 1.4, Math.max(high ?? 10, ...levels) * 1.4];
    const x = {
      time: { time: false, range: (_, from, to) => [from, Math.min(to, chart.end ?? to)] },
      spectrum: { time: false, distr: 3, log: 10, range: () => [1, Math.max(10, last)] },
      rate: { time: false, range: () => [0, last * 1.04] },
    };
    return {
      x: x[chart.x],
      y: chart.log
        ? { distr: 3, log: 10, range: logarithmic }
        : { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(high ?? 0, ...levels) > 0 ? Math.max(high ?? 0, ...levels) * 1.1 : 1] },
    };
  }

  function axes(chart) {
    const show = format[chart.unit];
    const font = "11px " + getComputedStyle(document.body).fontFamily;
    const axis = { stroke: css("--dim"), font, ticks: { show: false } };
    const each = (_, __, low, high) => steps(low, high);
    const texts = (format) => (_, all) => all.map((value) => value == null ? "" : format(value));
    return [
      Object.assign({}, axis, { grid: { show: false }, size: 24, values: texts(place[chart.x]) },
        chart.x === "spectrum" ? { splits: each } : {}),
      Object.assign({}, axis, {
        grid: { stroke: css("--rule"), width: 1 },
        size: (_, values) => 16 + 6.5 * Math.max(4, ...(values || []).map((text) => text.length)),
        values: texts(show),
      }, chart.unit === "count" ? { incrs: WHOLE } : {}, chart.log ? { splits: each } : {}),
    ];
  }

  function options(chart, index, width) {
    const sync = chart.x === "time" ? { key: "group-" + chart.group, setSeries: false } : undefined;
    return {
      width, height: HEIGHT, padding: [12, 18, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: true, y: false }, sync, points: { size: 6 } },
      scales: scales(chart),
      axes: axes(chart),
      series: [{}].concat(ordered(chart).map((line) => series(chart, line))),
      hooks: {
        draw: [(plot) => drawn(chart, plot)],
        setCursor: [(plot) => tell(chart, index, plot.cursor.left >= 0 ? plot.cursor.idx : null)],
      },
    };
  }

  let plots = [];
  function draw() {
    plots.forEach((plot) => plot.destroy());
    plots = charts.map((chart, index) => {
      const box = document.getElementById("chart-" + index);
      box.setAttribute("aria-label", alternative(chart));
      tell(chart, index, null);
      return new uPlot(options(chart, index, box.clientWidth), data(chart), box);
    });
    document.documentElement.dataset.drawn = String(plots.length);
  }
  function fit() {
    plots.forEach((plot, index) => {
      const width = document.getElementById("chart-" + index).clientWidth;
      if (width !== plot.width) plot.setSize({ width, height: plot.height });
    });
  }
  draw();
  addEventListener("resize", fit);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
})();
