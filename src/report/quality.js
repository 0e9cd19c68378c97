/* How good the predictions are, and how scores are spread. */

function tiles(entries) {
    return el("div", {class: "tiles"}, entries.map((e) => el("div", {class: "tile"}, el("span", {class: "value"}, e[1]),
        el("span", {class: "name"}, e[0]))));
}

/* ----------------------------------------------------------------- classes */

/* What is divided by no examples is not defined (null). */
function classRows(quality) {
    return quality.classes.map((c, i) => {
        const predicted = quality.confusion.reduce((sum, row) => sum + row[i], 0), when = (many, value) => many > 0 ? value : null;
        return {class: c.label, label: c.label, examples: c.examples, precision: when(predicted, c.precision), recall: when(c.examples, c.recall),
                f1: when(predicted + c.examples, c.f1)};
    });
}

function classTable(quality) {
    const rows = classRows(quality), open = rows.some((r) => r.precision === null || r.recall === null);
    const share = (title, help, get) => ({title, help, number: true, value: (r) => get(r) === null ? -1 : get(r),
                                          show: (r) => get(r) === null ? "\u2013" : bar(get(r), fixed(get(r)))});
    const made = table("Quality by class", [
        {title: "class", value: (r) => r.label},
        share("precision", "of those predicted as the class, the share that is of it", (r) => r.precision),
        share("recall", "of those of the class, the share that is predicted as it", (r) => r.recall),
        share("F1", "the harmonic mean of both", (r) => r.f1),
        {title: "examples", number: true, value: (r) => r.examples, show: (r) => count(r.examples)}], rows, {
            limit: 25,
            foot: el("tfoot", null, el("tr", null, el("th", {scope: "row"}, "mean over classes"),
                el("td", {class: "number"}, fixed(quality["macro-precision"])),
                el("td", {class: "number"}, fixed(quality["macro-recall"])),
                el("td", {class: "number"}, fixed(quality["macro-f1"])),
                el("td", {class: "number"}, count(quality.examples))))});
    return el("div", null, made, open && note("\u2013: not defined, as no example is predicted as the class (precision) or is of it (recall). The means "
        + "leave out classes that have neither, and take 0 otherwise."));
}

/* Rows are actual classes; a cell is as dark as its share of the row. */
function confusion(quality) {
    const names = quality.classes.map((c) => c.label), many = names.length > 14;
    const cell = (a, b) => {
        const n = quality.confusion[a][b], sum = quality.confusion[a].reduce((x, y) => x + y, 0);
        return el("td", {class: "cell" + (a === b ? " right" : ""), style: `--part:${at2(sum > 0 ? n / sum : 0)}`,
            "data-a": names[a], "data-b": names[b],
            "data-tip": `${names[a]} predicted as ${names[b]}: ${count(n)}` + (sum > 0 ? ` (${percent(n / sum)} of ${names[a]})` : "")},
            n > 0 && !many ? count(n) : "");
    };
    const made = el("table", {class: "confusion" + (many ? " many" : "")},
        el("caption", null, "Actual class in rows, predicted in columns"),
        el("thead", null, el("tr", null, el("td"), names.map((name) => el("th", {scope: "col"}, el("span", null, name))))),
        el("tbody", null, names.map((name, a) => el("tr", null, el("th", {scope: "row"}, name), names.map((_, b) => cell(a, b))))));
    filter.watch((value) => made.querySelectorAll(".cell").forEach((td) => td.classList.toggle("dim",
        value !== "" && td.getAttribute("data-a") !== value && td.getAttribute("data-b") !== value)));
    return el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Confusion matrix"}, roving(made, names.length));
}

function confusedPairs(quality) {
    const pairs = [];
    quality.confusion.forEach((row, a) => row.forEach((n, b) => {
        if (a !== b && n > 0) pairs.push([quality.classes[a].label, quality.classes[b].label, n]);
    }));
    pairs.sort((x, y) => y[2] - x[2]);
    const worst = pairs.slice(0, 3).map((p) => `${p[0]} taken for ${p[1]} (${count(p[2])})`);
    return worst.length > 0 ? "Most often: " + worst.join(", ") + "." : "No example is taken for another class.";
}

/* ----------------------------------------------------------------- numbers */

function valueCharts(report) {
    const points = report.points, charts = [];
    const histogramOf = (title, h, mark) => figure(title, histogram({low: h.low, high: h.high, title, mark,
                                                                      series: [{bins: h.bins, kind: "up", name: ""}]}));
    if (points && points.length > 1) {
        const all = points.flatMap((p) => [p[1], p[2]]), low = Math.min(...all), high = Math.max(...all);
        const pad = (high - low || 1) * 0.04, range = [low - pad, high + pad], banded = points[0].length > 3;
        const ends = points.flatMap((p) => banded ? [p[2] - 1.96 * p[3], p[2] + 1.96 * p[3]] : []);
        const upright = [Math.min(range[0], ...ends), Math.max(range[1], ...ends)];
        charts.push(figure("Prediction against target", scatter({x: range, y: upright, title: "Prediction against target",
            xTitle: "target", points: points.map((p) => [p[1], p[2],
                `example ${p[0]}: target ${num(p[1])}, predicted ${num(p[2])}` + (banded ? ` \u00b1 ${num(1.96 * p[3])}` : ""),
                banded ? 1.96 * p[3] : 0])}),
            (report.step > 1 ? `Every ${report.step}th example. ` : "") + (banded ? "Bars: intervals of 95 %." : "")));
    }
    if (report.errors) charts.push(histogramOf("Errors (prediction \u2212 target)", report.errors, 0));
    if (report.targets) charts.push(histogramOf("Targets", report.targets));
    if (report.values) charts.push(histogramOf("Predictions", report.values));
    if (report.coverage)
        charts.push(figure("Targets inside the intervals", lines({x: [0, 1], y: [0, 1], percent: true, percentX: true, diagonal: true,
            title: "Coverage of intervals", xTitle: "promised", series: [{kind: "up", points: report.coverage.map((c) =>
                [c[0], c[1], `interval of ${percent(c[0])}: ${percent(c[1])} of the targets`])}]}),
            "On the line, the model knows how uncertain it is; below, it is too sure."));
    return el("div", {class: "grid"}, charts);
}

/* What the numbers do not say by themselves. */
function seenBefore(report) {
    const n = report.quality.examples, same = report.profile.duplicates ? report.profile.duplicates.support : 0;
    return 2 * same >= n && el("p", {class: "caution"}, `${count(same)} of ${plural(n, "example")} ${same === 1 ? "is also a support example" : "are also support examples"} `
        + "of the model: this tells little about new data.");
}
function strangeClasses(report) {
    const strange = report.quality.classes.filter((c) => !report.model.classes.includes(c.label) && c.examples > 0);
    const sum = strange.reduce((s, c) => s + c.examples, 0), names = cut(strange.map((c) => c.label).join(", "), 200);
    if (sum === 0) return {none: false, text: null};
    const none = sum === report.quality.examples;
    return {none, text: el("p", {class: "caution"}, none
        ? `The model knows none of the classes of these data (${names}), so that no prediction can be right. Is this the target it was trained for?`
        : `${plural(sum, "example")} ${sum === 1 ? "is of a class" : "are of classes"} that the model does not know (${names}).`)};
}

function qualitySection(report) {
    const q = report.quality;
    if (!q) return report.unjudged ? section("quality", "Quality", null, note("Not judged: " + report.unjudged + ".")) : null;
    const where = plural(q.examples, "example") + (report.profile.name ? " of " + report.profile.name : "");
    if (!q.classes)
        return section("quality", "Quality", "Predictions of " + where + " compared with their targets.",
            tiles([["root mean squared error", num(q.rmse)], ["mean absolute error", num(q.mae)], ["Pearson correlation", q.pearson === null ? "undefined" : fixed(q.pearson)]]
                .concat(q.nlpd !== undefined ? [["negative log density", num(q.nlpd)]] : [])), seenBefore(report), valueCharts(report));
    const right = Math.round(q.accuracy * q.examples), strange = strangeClasses(report);
    return section("quality", "Quality", `${count(right)} of ${where} ${right === 1 || q.examples === 1 ? "is" : "are"} predicted rightly.`,
        tiles([["accuracy", fixed(q.accuracy)], ["mean F1 of classes", fixed(q["macro-f1"])], ["errors", count(q.examples - right)]]
            .concat(q.nlpd !== undefined ? [["negative log density", num(q.nlpd)]] : [])), strange.text, seenBefore(report),
        el("div", {class: "beside"}, !strange.none && classTable(q), q.classes.length > 1 && el("div", null, confusion(q), note(confusedPairs(q)))));
}

/* ------------------------------------------------------------------ scores */

function scoreCharts(report) {
    const judged = report.quality !== undefined, two = report.model.classes.length === 2, votes = report.model.pairs && !two;
    const strange = judged && report.quality.classes.some((c) => c.examples > 0 && !report.model.classes.includes(c.label));
    const items = report.scores.map((s) => {
        const other = two && !strange ? report.model.classes[0] : "others";
        const drawing = histogram({low: s.low, high: s.high, mark: votes ? undefined : 0, title: "Scores of " + s.name,
            xTitle: votes ? "votes" : "score", shares: true,
            series: [{bins: s.other, kind: "soft", name: other}, {bins: s.own, kind: "up", name: s.name}]});
        return {classes: two ? report.model.classes : [s.name], node: figure(el("span", null, s.name, two ? " against " + other : ""), drawing)};
    });
    const few = 12;
    let all = items.length <= few;
    const refresh = (value) => items.forEach((item, i) => { item.node.hidden = value === "" ? !all && i >= few : !item.classes.includes(value); });
    filter.watch(refresh);
    return el("div", null, legend(["up", judged ? "examples of the class" : "predicted as the class"], ["soft", "all others"]),
        el("div", {class: "grid"}, items.map((i) => i.node)), !all && el("button", {type: "button", class: "more", onclick: (event) => {
            all = true;
            refresh(filter.value);
            event.target.remove();
        }}, `Show all ${items.length} classes`));
}

function reliability(title, bins) {
    const most = Math.max(...bins.map((b) => b[0]));
    return lines({x: [0, 1], y: [0, 1], percent: true, percentX: true, diagonal: true, title, xTitle: "probability",
        series: [{kind: "up", points: bins.map((b) => [b[1], b[2],
            `${plural(b[0], "example")}: mean probability ${percent(b[1])}, right ${percent(b[2])}`, 2.5 + 4 * Math.sqrt(b[0] / most)])}]});
}

function calibrationCharts(report) {
    const charts = [], c = report.calibration;
    if (c) {
        const place = el("div");
        filter.watch((value) => {
            const one = c.classes.find((k) => k.class === value);
            place.replaceChildren(one && one.bins.length > 0 ? reliability("Calibration of " + value, one.bins)
                                                             : reliability("Calibration", c.winner));
        });
        charts.push(figure("Calibration: share of right ones by probability", place,
            `On the line, probabilities can be taken at their word. Mean gap ${percent(c.gap)}, Brier score ${num(c.brier)}.`));
    }
    if (report.margins) {
        const bins = report.margins;
        charts.push(figure("Accuracy by margin, a tenth of the examples each", lines({x: [0, bins.length + 1], y: [0, 1.02], percent: true,
            title: "Accuracy by margin", xTitle: "tenths of the examples, least sure first", series: [{kind: "up", points: bins.map((b, i) =>
                [i + 1, b[3], `${plural(b[0], "example")} with margins ${num(b[1])} \u2026 ${num(b[2])}: ${percent(b[3])} right`])}]}),
            "The margin is how far the winner's score is ahead. A curve that rises shows that it can be used to set doubtful cases aside."));
    }
    return charts.length > 0 ? el("div", {class: "grid"}, charts) : null;
}

function scoreSection(report) {
    if (!report.scores) return !report.quality && report.values ? section("scores", "Predictions", null, valueCharts(report)) : null;
    const marked = report.scores.filter((s) => inside(0, s)).length;
    return section("scores", "Scores", report.model.pairs && report.model.classes.length > 2
            ? "How many pairs of classes are decided for each class; among equals the scores of the pairs decide."
            : "How the decision functions spread the examples" + (marked === 0 ? "." : marked < report.scores.length
                ? "; a line marks the threshold where it lies among them." : "; the line marks the threshold."),
                   scoreCharts(report), calibrationCharts(report));
}
