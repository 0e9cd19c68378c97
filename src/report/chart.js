/* Charts as SVG: histograms, lines, points. Colours come from the style sheet; every mark has its values as a tooltip. */

const CHART = {width: 340, height: 196, right: 16, top: 10, bottom: 34};

/* About `many` round numbers between low and high, of which no two are closer than `least`. */
function ticks(low, high, many = 4, least = 0) {
    const span = high - low;
    if (!(span > 0)) return [low];
    const power = Math.pow(10, Math.floor(Math.log10(span / many)));
    const step = Math.max(least, [1, 2, 5, 10].map((k) => k * power).find((s) => span / s <= many) || span);
    const found = [];
    for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-9; v += step)
        found.push(Math.abs(v) < step * 1e-9 ? 0 : Number(v.toPrecision(12)));
    return found;
}

function scale(low, high, from, to) {
    const span = high - low || 1;
    return (v) => from + (v - low) / span * (to - from);
}
function at(v) { return v.toFixed(1); }

/* Numbers of an axis with as many digits as tell them apart. Very large and very small ones have a common factor. */
function tickTexts(values) {
    const most = Math.max(...values.map(Math.abs)), step = values.length > 1 ? values[1] - values[0] : most;
    if (!(most > 0)) return {texts: values.map((v) => num(v)), factor: ""};
    const power = most >= 1e5 || most < 1e-3 ? 3 * Math.floor(Math.log10(most) / 3 + 1e-9) : 0, unit = Math.pow(10, power);
    const digits = Math.max(0, Math.min(12, -Math.floor(Math.log10(step / unit) + 1e-9)));
    const text = (v) => values.length > 1 ? fixed(v / unit, digits) : num(v / unit);
    return {texts: values.map((v) => v === 0 ? "0" : text(v)), factor: power === 0 ? "" : "\u00d710" + raised(power)};
}
function raised(n) {
    return String(n).replace(/./g, (c) => c === "-" ? "\u207b" : "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"[c]);
}
function tickWidth(texts) { return Math.max(0, ...texts.map((t) => textWidth(t, false))) * 10.5 / 12.5; }

/* As many of them as have room below an axis. */
function baseTicks(options, room) {
    for (let many = room < 240 ? 3 : 5; ; many--) {
        const values = options.at || ticks(options.x[0], options.x[1], many, options.whole ? 1 : 0);
        const made = options.percentX ? {texts: values.map(percent), factor: ""} : tickTexts(values);
        if (many <= 1 || values.length * (tickWidth(made.texts) + 10) <= room) return Object.assign(made, {values});
    }
}

/* Axes with their scales: options have x: [low, high], y: [low, high], xTitle, title for those who cannot see; whole, counts:
 * x, y are whole numbers; at: where x has its numbers. */
function plane(options) {
    const c = Object.assign({}, CHART, {width: options.width || CHART.width}), bottom = c.height - c.bottom;
    const values = ticks(options.y[0], options.y[1], 4, options.counts ? 1 : 0);
    const {texts, factor} = options.percent ? {texts: values.map(percent), factor: ""} : tickTexts(values);
    c.left = Math.max(40, Math.ceil(tickWidth(texts)) + 12);
    if (factor) c.top += 12;
    const x = scale(options.x[0], options.x[1], c.left, c.width - c.right);
    const y = scale(options.y[0], options.y[1], bottom, c.top);
    const grid = values.map((v, i) => [
        svg("line", {class: "grid", x1: c.left, x2: c.width - c.right, y1: at(y(v)), y2: at(y(v))}),
        svg("text", {class: "tick", x: c.left - 6, y: at(y(v) + 3.5), "text-anchor": "end"}, texts[i])]);
    const below = baseTicks(options, c.width - c.right - c.left), half = (text) => tickWidth([text]) / 2;
    const base = below.values.map((v, i) => svg("text", {class: "tick", x: at(Math.min(x(v), c.width - half(below.texts[i]) - 1)), y: bottom + 15,
        "text-anchor": "middle"}, below.texts[i]));
    const xTitle = [options.xTitle, below.factor].filter(Boolean).join(", ");
    const root = svg("svg", {viewBox: `0 0 ${c.width} ${c.height}`, role: "group", "aria-label": options.title}, grid, base,
        svg("line", {class: "axis", x1: c.left, x2: c.width - c.right, y1: bottom, y2: bottom}),
        factor && svg("text", {class: "title", x: c.left, y: 10}, factor),
        xTitle && svg("text", {class: "title", x: c.width - c.right, y: c.height - 3, "text-anchor": "end"}, xTitle));
    return {root, x, y, bottom, top: c.top};
}

/* Bars over bins of equal width; series: [{bins, kind, name}], drawn one over the other. With `shares`, bars are parts of
 * their series, so that few and many can be compared. A single bin is one value in its middle: a thin bar. */
function histogram(options) {
    const bins = options.series[0].bins.length, width = (options.high - options.low) / bins;
    const total = options.series.map((s) => options.shares ? Math.max(1, s.bins.reduce((a, b) => a + b, 0)) : 1);
    const most = Math.max(...options.series.map((s, k) => Math.max(...s.bins) / total[k])) || 1;
    const middle = options.low / 2 + options.high / 2, one = bins === 1;
    const p = plane({x: [options.low, options.high], y: [0, most * 1.05], title: options.title, xTitle: options.xTitle,
                     percent: options.shares, counts: !options.shares, whole: options.whole, width: options.width, at: one ? [middle] : null});
    for (let i = 0; i < bins; i++) {
        const from = options.low + i * width, to = from + width;
        const range = one ? num(middle) : options.whole ? whole(from, to) : num(from) + " \u2026 " + num(to);
        const told = options.series.map((s) => (s.name ? s.name + ": " : "") + count(s.bins[i])).join(", ");
        const group = svg("g", {"data-tip": range + " \u2014 " + told});
        group.append(svg("rect", {class: "catch", x: at(p.x(from)), y: p.top, width: at(p.x(to) - p.x(from)),
                                  height: at(p.bottom - p.top)}));
        options.series.forEach((s, k) => {
            const top = p.y(s.bins[i] / total[k]), wide = one ? 8 : Math.max(1, p.x(to) - p.x(from) - 1);
            if (s.bins[i] > 0) group.append(svg("rect", {class: "column " + s.kind, x: at(one ? p.x(middle) - wide / 2 : p.x(from) + 0.5), y: at(top),
                width: at(wide), height: at(p.bottom - top)}));
        });
        p.root.append(group);
    }
    if (options.mark !== undefined && inside(options.mark, options))
        p.root.append(svg("line", {class: "mark", x1: at(p.x(options.mark)), x2: at(p.x(options.mark)), y1: p.top,
                                   y2: p.bottom}));
    return roving(p.root);
}
function inside(v, range) { return v > range.low && v < range.high; }
function whole(from, to) {
    const first = Math.ceil(from), last = Math.ceil(to) - 1;
    return first >= last ? String(first) : first + "\u2013" + last;
}

/* points: [[x, y, tip], ...] joined by a line; options as of plane, and diagonal: what would be ideal. */
function lines(options) {
    const p = plane(options);
    if (options.diagonal) p.root.append(svg("line", {class: "ideal", x1: at(p.x(options.x[0])), y1: at(p.y(options.y[0])),
                                                    x2: at(p.x(options.x[1])), y2: at(p.y(options.y[1]))}));
    for (const s of options.series) {
        const path = s.points.map((q) => at(p.x(q[0])) + "," + at(p.y(q[1]))).join(" ");
        p.root.append(svg("polyline", {class: "line " + s.kind, points: path}));
        for (const q of s.points)
            if (q[2]) p.root.append(svg("circle", {class: "dot " + s.kind, cx: at(p.x(q[0])), cy: at(p.y(q[1])),
                                                   r: at(q[3] || 3.5), "data-tip": q[2]}));
    }
    return roving(p.root);
}

/* points: [[x, y, tip, half the height of an interval], ...] */
function scatter(options) {
    const p = plane(options);
    p.root.append(svg("line", {class: "ideal", x1: at(p.x(options.x[0])), y1: at(p.y(options.x[0])),
                               x2: at(p.x(options.x[1])), y2: at(p.y(options.x[1]))}));
    for (const q of options.points) {
        if (q[3]) p.root.append(svg("line", {class: "band", x1: at(p.x(q[0])), x2: at(p.x(q[0])), y1: at(p.y(q[1] - q[3])),
                                             y2: at(p.y(q[1] + q[3]))}));
        p.root.append(svg("circle", {class: "point", cx: at(p.x(q[0])), cy: at(p.y(q[1])), r: 2.6, "data-tip": q[2]}));
    }
    return roving(p.root);
}

/* Names with bars, the largest as long as its place. entries: [[name, value, tip], ...] */
function bars(entries, kind = "") {
    const most = Math.max(...entries.map((e) => Math.abs(e[1])), 1e-300);
    return el("ol", {class: "bars " + kind}, entries.map((e) => el("li", {"data-class": e[3] || null},
        el("span", {class: "name"}, e[0] === "" ? "\u2205" : e[0]),
        el("span", {class: "track"}, el("span", {class: e[1] < 0 ? "down" : "up", style: `width:${at(100 * Math.abs(e[1]) / most)}%`})),
        el("span", {class: "value"}, e[2] || num(e[1])))));
}
