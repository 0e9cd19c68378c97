/* What the data are like. */

const NOUNS = {tree: ["nodes per tree", "labels", "words"], sequence: ["tokens per sequence", null, "words"], vector: ["values per vector", null, null]};

function distribution(title, d) {
    return figure(title, histogram({low: d.low, high: d.high, whole: true, title, width: 250, xTitle: "", series: [{bins: d.bins, kind: "up", name: ""}]}),
        d.least === d.most ? "the same for all" : `from ${count(d.least)} to ${count(d.most)}, median ${count(d.median)}, mean ${num(d.mean)}`);
}

function frequent(title, f) {
    const strange = f.strange > 0 && `${count(f.strange)} of them (${percent(f.strangeTotal / f.total)} of all places) are in no support example.`;
    return figure(`${title}: ${count(f.different)} different`, bars(f.top.map((t) => [t[0], t[1], count(t[1])])), strange || null);
}

function columnProfile(c) {
    const nouns = NOUNS[c.type], parts = [];
    if (c.sizes) parts.push(distribution(nouns[0], c.sizes));
    if (c.depths) parts.push(distribution("depth", c.depths));
    if (c.labels && c.labels.different > 0) parts.push(frequent("labels", c.labels));
    if (c.words && c.words.different > 0) parts.push(frequent("words", c.words));
    if (c.features && c.features.different > 0) parts.push(frequent("features", c.features));
    return el("details", {class: "group", open: c.used}, el("summary", null, el("h3", null, el("code", null, c.name), " ", el("span", {class: "type"}, c.type))),
              el("div", {class: "grid narrow"}, parts));
}

function balance(report) {
    const classes = report.quality && report.quality.classes;
    if (!classes) return null;
    return figure("Class balance", bars(classes.map((c) => [c.label, c.examples, `${count(c.examples)} (${percent(c.examples / report.quality.examples)})`, c.label])));
}

function duplicates(d, examples) {
    const sentence = (n, text) => el("li", null, el("strong", null, count(n)), ` (${percent(n / examples)}) ${text}`);
    return el("div", null, el("h3", null, "Duplicates"), el("ul", {class: "plain"},
        sentence(d.within, "equal an earlier example of these data"),
        d.conflicting > 0 && sentence(d.conflicting, "of these have another target than the first of their kind"),
        sentence(d.support, "equal a support example, so that the model may have seen them with their answers")),
        note("Examples are compared by the columns that the model uses. It keeps its support examples only, so equal training examples may be more."));
}

function dataSection(report) {
    const p = report.profile;
    const lead = p.support ? `The ${plural(p.examples, "example")} that the model keeps.`
        : plural(p.examples, "example") + (p.name ? " of " + p.name : "") + (p.target ? `, target ${p.target}` : ", without targets")
          + (p.bad > 0 ? `; ${count(p.bad)} could not be read` : "") + ".";
    return section("data", p.support ? "Support examples" : "The data", lead, balance(report),
                   p.duplicates && duplicates(p.duplicates, p.examples), p.columns.map(columnProfile));
}
