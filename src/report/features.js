/* What decides in the model: features with their weights, fragments drawn as trees. */

const WIDEST = 560; /* beyond, a drawing that has to fit into its card could not be read */

function fragment(text, title) {
    const nodes = readTree(text);
    if (nodes === null || nodes.length > 80) return el("code", {class: "brackets"}, cut(text, 300));
    const drawing = drawTree(nodes, {step: 34, gap: 6, title: title || text});
    return Number(drawing.getAttribute("width")) > WIDEST ? el("code", {class: "brackets"}, text) : drawing;
}

function featureDrawing(f) {
    if (f.kind === "fragment") return fragment(f.text);
    return el("code", {class: "brackets"}, f.text);
}

function featureItem(f, most) {
    const where = `weight ${num(f.weight)}, in ${plural(f.examples, "support example")}`
        + (f.occurrences > f.examples ? `, ${num(f.occurrences)} times` : "");
    return el("li", {class: f.weight < 0 ? "down" : "up", "data-tip": where},
        el("div", {class: "weight", style: "--part:" + at2(Math.abs(f.weight) / most)}, signed(f.weight),
           el("span", {class: "small"}, " \u00d7\u2009" + count(f.examples))),
        el("div", {class: "drawing"}, featureDrawing(f)));
}
function shortTerm(text) { return shortNumbers(text.replace(/, (bow=0|algorithm=\w+|alpha=1)(?=[,)])/g, "")); }
/* Weights and values of parameters with six digits. */
function shortNumbers(text) {
    return text.replace(/(^|[=( ])(\d+\.\d+(?:e[-+]?\d+)?)(?=[*,) ]|$)/g, (all, before, v) => before + Number(Number(v).toPrecision(6)));
}
function termCode(text) { return el("code", {title: text}, shortTerm(text)); }

/* Weights of different terms do not compare, so that each has a list of its own. */
function featureList(list, terms) {
    const parts = terms.map((term, t) => {
        const own = list.features.filter((f) => f.term === t), most = Math.max(...own.map((f) => Math.abs(f.weight)), 1e-300);
        return own.length > 0 && [terms.length > 1 && note(termCode(term.text)),
                                  roving(el("ol", {class: "features"}, own.map((f) => featureItem(f, most))))];
    });
    return [list.features.length > 0 ? parts : note("None."),
            list.bound !== undefined && note(`The search was ended early; what is left out weighs at most ${num(list.bound)}.`)];
}

function side(list, terms) {
    const value = list.class === undefined;
    const title = value ? (list.up ? "Raise the value" : "Lower the value")
        : (list.up ? "For " : "Against ") + list.name;
    return el("div", {class: "side"}, el("h4", null, title), featureList(list, terms));
}

function featureSection(report) {
    if (report.unexplained) return section("features", "What decides", null, note(report.unexplained));
    const f = report.features;
    if (!f) return null;
    const reasons = f.terms.filter((t) => t.reason).map((t) => note(t.reason));
    if (!f.lists) return section("features", "What decides", null, reasons);
    const two = report.model.classes.length === 2, groups = new Map();
    for (const list of f.lists) {
        const key = list.class === undefined || two ? "" : list.class;
        if (!groups.has(key)) groups.set(key, []);
        groups.get(key).push(list);
    }
    const items = Array.from(groups, ([name, lists], i) => {
        const body = el("div", {class: "sides"}, lists.map((list) => side(list, f.terms)));
        const node = name === "" ? body : el("details", {class: "group", open: i < 6 || groups.size <= 8}, el("summary", null, el("h3", null, name)), body);
        return {node, classes: name === "" ? report.model.classes : [name]};
    });
    filtered(items, (item) => item.classes);
    filter.watch((value) => items.forEach((item) => { if (value !== "" && item.classes.includes(value)) item.node.open = true; }));
    const fragments = f.terms.some((t) => t.kind === "fragment" && !t.reason);
    return section("features", "What decides", "The features with the largest weights in the decision functions, each with its weight and the number of "
        + "support examples that have it." + (fragments ? " A node with a dashed frame has its children left open." : ""), reasons, items.map((i) => i.node),
        f.unlisted && note("Features are left out: " + f.unlisted + "."),
        f.left > 0 && note(`${plural(f.left, "class", "classes")} more have no room here; espalier explain lists them.`));
}
