/* What the model is. */

const LEARNERS = {svm: "support vector machine", svr: "support vector regression", perceptron: "perceptron",
                  gp: "Gaussian process"};
const GREEK = {lambda: "\u03bb", alpha: "\u03b1", mu: "\u03bc", gamma: "\u03b3", tau: "\u03c4", lambda1: "\u03bb\u2081",
               lambda2: "\u03bb\u2082"};

function facts(summary) {
    const found = {};
    for (const line of summary.split("\n")) {
        const tab = line.indexOf("\t");
        if (tab > 0) found[line.slice(0, tab)] = line.slice(tab + 1);
    }
    return found;
}

/* "C=10 class-weight= ...": a value ends where a name begins that stands further down in the table. */
function settingsOf(model) {
    const names = ["seed"].concat(model.settingTable.map((s) => s.name)), found = {};
    const parts = model.settings.split(" ");
    let name = null;
    for (const part of parts) {
        const equal = part.indexOf("="), key = equal < 0 ? null : part.slice(0, equal);
        if (key !== null && names.indexOf(key) > names.indexOf(name)) found[name = key] = part.slice(equal + 1);
        else if (name !== null) found[name] += " " + part;
    }
    return found;
}

function kernelLeaf(leaf) {
    const ordinary = leaf.parameters.filter((p) => p.name !== "algorithm" && p.value !== "");
    return el("li", null, el("code", null, leaf.name), leaf.column ? [" on ", el("code", null, leaf.column)] : null, ": ",
        leaf.help, ordinary.length > 0 && el("span", {class: "parameters"}, ordinary.map((p) => el("span",
            {"data-tip": p.name + ": " + p.help + (p.default !== "" ? " (default " + p.default + ")" : ""), tabindex: "0"},
            (GREEK[p.name] || p.name) + "\u00a0=\u00a0" + (typeof p.value === "number" ? num(p.value, 6) : p.value === null ? "\u221e" : p.value)))));
}

/* Values by symbol, learned or given: a row for each label, a column for each parameter. */
function symbolTable(leaf) {
    const labels = new Map(), names = [];
    for (const [name, label, value] of leaf.symbols) {
        if (!names.includes(name)) names.push(name);
        if (!labels.has(label)) labels.set(label, {label});
        labels.get(label)[name] = value;
    }
    const most = (name) => Math.max(...Array.from(labels.values(), (r) => r[name] || 0), 1e-300);
    const rows = Array.from(labels.values()).sort((a, b) => (b[names[0]] || 0) - (a[names[0]] || 0));
    return table("Values by label of " + leaf.name + (leaf.column ? " on " + leaf.column : ""),
        [{title: "label", value: (r) => r.label, show: (r) => el("code", null, r.label)}].concat(names.map((name) => ({
            title: (GREEK[name] || name), help: name, number: true, value: (r) => r[name] === undefined ? -1 : r[name],
            show: (r) => r[name] === undefined ? "\u2013" : bar(r[name] / most(name), num(r[name], 4))}))),
        rows, {limit: 20, kind: "compact"});
}

function learningCurve(curve, classes) {
    const rate = [], running = [];
    let seen = 0, updates = 0;
    curve.updates.forEach((u, i) => {
        const size = Math.min(curve.width, curve.steps - i * curve.width);
        seen += size;
        updates += u;
        rate.push([seen, u / size, `examples ${count(seen - size + 1)}\u2013${count(seen)}: ${percent(u / size)} updates`, 2.6]);
        running.push([seen, updates / seen]);
    });
    const top = Math.max(...rate.map((q) => q[1])) * 1.05;
    const chart = lines({x: [0, curve.steps], y: [0, top], percent: true, title: "Learning curve", xTitle: "examples seen",
                         series: [{kind: "soft", points: running}, {kind: "up", points: rate}]});
    const rows = classes.map((name, c) => {
        const [hits, misses, alarms] = curve.tally[c];
        return {name, class: name, hits, misses, alarms, f1: 2 * hits / Math.max(1, 2 * hits + misses + alarms)};
    });
    return el("div", null, el("h3", null, "Learning, example by example"),
        el("div", {class: "beside"},
           figure("Share of examples that changed the model", chart, "Points: within each interval; line: since the beginning."),
           el("div", null, note(`${count(curve.steps)} examples seen, ${count(curve.mistakes)} of them predicted wrongly before `
               + `learning from them: a running accuracy of ${percent(1 - curve.mistakes / curve.steps)}.`),
              table("Predictions before learning", [
                  {title: "class", value: (r) => r.name},
                  {title: "right", number: true, value: (r) => r.hits, show: (r) => count(r.hits)},
                  {title: "missed", number: true, value: (r) => r.misses, show: (r) => count(r.misses)},
                  {title: "false alarms", number: true, value: (r) => r.alarms, show: (r) => count(r.alarms)},
                  {title: "F1", number: true, value: (r) => r.f1, show: (r) => bar(r.f1, fixed(r.f1))}],
                  rows, {limit: 20, kind: "compact"}))));
}

function settingsTable(model) {
    const values = settingsOf(model), rows = model.settingTable.filter((s) => s.name in values)
        .map((s) => Object.assign({value: values[s.name]}, s));
    return el("details", null, el("summary", null, "All settings"), table("", [
        {title: "setting", value: (r) => r.name, show: (r) => el("code", null, r.name)},
        {title: "value", value: (r) => r.value,
         show: (r) => r.value === "" ? "\u2013" : el(r.value !== r.default && r.default !== "" ? "strong" : "span", null, r.value)},
        {title: "default", value: (r) => r.default, show: (r) => r.default || "\u2013"},
        {title: "meaning", value: (r) => r.help}], rows, {kind: "compact"}));
}

/* Of a Gaussian process: all that was learned, the largest first. */
function hyperTable(text) {
    const rows = text.split("\n").filter(Boolean).map((line) => line.split("\t")).map(([name, value]) => ({name, value: Number(value)}));
    if (rows.length === 0) return null;
    const most = Math.max(...rows.map((r) => Math.abs(r.value)), 1e-300);
    return [el("h3", null, "Hyperparameters"), table("Learned or fixed", [
        {title: "name", value: (r) => r.name, show: (r) => el("code", null, r.name)},
        {title: "value", number: true, value: (r) => r.value, show: (r) => bar(Math.abs(r.value) / most, num(r.value, 4))}],
        rows, {limit: 20, kind: "compact"})];
}

function factsTable(known) {
    const told = ["learner", "settings", "class"].concat(shortNumbers(known.kernel || "") === (known.kernel || "") ? ["kernel"] : []);
    const rows = Object.keys(known).filter((k) => !told.includes(k)).map((k) => ({key: k, value: known[k]}));
    return el("details", null, el("summary", null, "All facts"), table("", [{title: "fact", value: (r) => r.key}, {title: "value", value: (r) => r.value}],
                                                                       rows, {kind: "compact"}));
}

function modelSection(report) {
    const model = report.model, known = facts(model.summary), items = [];
    const add = (term, ...content) => items.push(el("dt", null, term), el("dd", null, ...content));
    add("Learner", (LEARNERS[model.learner] || model.learner) + (model.vote ? ", its updates vote" : "")
        + (model.pairs && model.classes.length > 2 ? ", one class against one" : ""));
    add("Kernel", el("code", {class: "expression", title: model.kernel}, shortNumbers(model.kernel)), el("ul", {class: "leaves"}, model.leaves.map(kernelLeaf)));
    if (model.classes.length > 0)
        add(plural(model.classes.length, "class", "classes"),
            el("span", {class: "chips"}, model.classes.map((c) => el("span", {class: "chip"}, c))));
    add("Examples kept", count(model.support) + (known["trained-on"] ? " of " + count(known["trained-on"]) : ""));
    const subtrees = Object.keys(known).filter((k) => k.endsWith(": distinct subtrees"));
    if (subtrees.length > 0) add("Different subtrees", subtrees.map((k) => count(known[k])).join(", "));
    if (known.end) add("Training", known.end + (known.iterations ? " after " + plural(Number(known.iterations), "iteration") : ""));
    if (!model.finished) add("State", "a checkpoint: the run that learns it is not at its end");
    const symbols = model.leaves.filter((leaf) => leaf.symbols.length > 0);
    return section("model", "The model", null, el("dl", {class: "facts"}, items), settingsTable(model), factsTable(known),
        model.hyperparameters && hyperTable(model.hyperparameters), symbols.length > 0 && el("h3", null, "Values by symbol"), symbols.map(symbolTable),
        model.curve && learningCurve(model.curve, model.classes));
}
