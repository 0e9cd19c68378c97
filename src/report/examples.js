/* Examples with what decided about them. */

/* The nodes of a tree as tree.js wants them, with their shares in one decision function. */
function exampleNodes(tree, at) {
    return tree.nodes.map((n) => ({label: n[0], parent: n[1], leaf: n[2] === 1, below: n[3], share: n[4 + at] || 0, open: false}));
}

/* Leaves from left to right: nodes come by depth, so that a walk puts them in order. */
function leavesOf(nodes) {
    const children = nodes.map(() => []), found = [], stack = nodes.length > 0 ? [0] : [];
    nodes.forEach((v, i) => { if (v.parent >= 0) children[v.parent].push(i); });
    while (stack.length > 0) {
        const i = stack.pop();
        if (nodes[i].leaf) found.push(i);
        for (let k = children[i].length; k-- > 0;) stack.push(children[i][k]);
    }
    return {found, children};
}

/* A word on the colour of its share. */
function word(text, share, most, tip) {
    return [el("span", {class: "word " + (share < 0 ? "down" : "up"), title: tip, style: `--part:${at2(Math.min(1, Math.abs(share) / most))}`}, text), " "];
}

/* The words of an example, each with its contribution, or with the shares of its leaf and of the node right above. */
function words(example) {
    const tree = example.trees[0];
    if (example.words && example.words.length > 0) {
        const most = Math.max(...example.words.map((w) => Math.abs(w[1])), 1e-300);
        return el("span", {class: "words"}, example.words.map((w) => word(w[0], w[1], most, `${w[0]}: ${signed(w[1])}`)),
                  example.text.endsWith("\u2026") && "\u2026");
    }
    if (!tree || tree.count > tree.nodes.length || tree.count > 400) return el("span", {class: "words"}, example.text || "(empty)");
    const nodes = exampleNodes(tree, 0), {found, children} = leavesOf(nodes);
    const most = Math.max(...nodes.map((v) => Math.abs(v.share)), 1e-300);
    return el("span", {class: "words"}, found.map((i) => {
        const parent = nodes[i].parent, alone = parent >= 0 && children[parent].length === 1;
        const share = nodes[i].share + (alone ? nodes[parent].share : 0);
        return word(nodes[i].label, share, most, null);
    }));
}

/* Rows of a sum: bias, features, rest, score. */
function contributions(f) {
    const rows = [{name: "bias", value: f.bias, plain: true}];
    for (const item of f.up.concat(f.down))
        rows.push({name: item.text, value: item.contribution, kind: item.kind,
                   tip: `weight ${num(item.weight)} \u00d7 value ${num(item.value)}`});
    const listed = Math.max(...rows.map((r) => Math.abs(r.value)), 1e-300);
    rows.push({name: "all others", value: Math.abs(f.rest) < 1e-9 * listed ? 0 : f.rest, plain: true}); /* 0 but for rounding */
    const most = Math.max(listed, Math.abs(f.rest));
    return el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Contributions to the score"},
        el("table", {class: "sum"}, el("caption", null, `What the score for ${f.name} is made of`),
            el("tbody", null, rows.map((r) => el("tr", {title: r.tip || null},
                el("td", {class: "number"}, signed(r.value)),
                el("td", {class: "diverging"}, el("span", {class: r.value < 0 ? "down" : "up", style: `--part:${at2(Math.abs(r.value) / most)}`})),
                el("th", {scope: "row"}, r.plain ? r.name : el("code", null, cut(r.name, 220)))))),
            el("tfoot", null, el("tr", null, el("td", {class: "number"}, signed(f.score)), el("td"), el("th", {scope: "row"}, "score")))));
}

function exampleTree(example, tree, at, terms, several) {
    const nodes = exampleNodes(tree, at), most = Math.max(...nodes.map((v) => Math.abs(v.share)), 1e-300);
    const left = tree.count - tree.nodes.length;
    return [several && note(tree.term === undefined ? el("code", null, tree.column) : termCode(terms[tree.term].text)),
            largeTree(nodes, {step: 42, title: "Tree of example " + example.number, strength: (v) => v.share / most,
                tip: (v) => tree.term === undefined ? v.label : `${v.label}: share ${num(v.share)}`}),
            tree.count > FIRST && note(`The tree has ${count(tree.count)} nodes. Nodes with a number have as many below that are not drawn`
                + (left > 0 ? `; ${count(left)} of the deepest are not part of this page.` : "."))];
}

function exampleBody(example, report) {
    const place = el("div", {class: "sum-and-tree"}), terms = report.features ? report.features.terms : [];
    const show = (at) => {
        const f = example.functions[at];
        place.replaceChildren(...example.trees.flatMap((tree) => exampleTree(example, tree, at, terms, example.trees.length > 1)).filter(Boolean),
            ...(f ? [contributions(f)] : []),
            ...(f && f.bound !== undefined ? [note(`The search was ended early; what is left out contributes at most ${num(f.bound)} each.`)] : []),
            ...(example.large ? [note("The tree is so large that the shares of its nodes are left out.")] : []),
            ...(example.unexplained ? [note("Not explained: " + example.unexplained + ".")] : []));
    };
    show(0);
    return [example.functions.length > 1 && choice("Decision function", example.functions.map((f, i) =>
        [i, `for ${f.name} (${f.class === example.predicted ? "predicted" : "actual"}): ${signed(f.score)}`]), show), place];
}

function verdict(example) {
    if (example.predicted === undefined)
        return el("span", {class: "verdict"}, `predicted ${num(example.value)}` + (example.deviation ? ` \u00b1 ${num(1.96 * example.deviation)}` : ""),
                  example.target !== undefined && `, is ${num(example.target)}`);
    if (example.actual === undefined) return el("span", {class: "verdict"}, example.predicted);
    return el("span", {class: "verdict " + (example.right ? "right" : "wrong")}, el("span", {"aria-hidden": "true"}, example.right ? "\u2713 " : "\u2717 "),
        example.right ? example.predicted : [example.predicted, el("span", {class: "is"}, " instead of "), example.actual]);
}

function exampleItem(example, report, open) {
    const body = el("div", {class: "body"});
    const sure = example.probability !== undefined ? percent(example.probability) : example.margin !== undefined ? "margin " + num(example.margin, 2) : "";
    const node = el("details", {class: "example", "data-right": example.right === undefined ? null : String(example.right)},
        el("summary", null, verdict(example), words(example), el("span", {class: "small"}, `example ${count(example.number)}`, sure && " \u00b7 " + sure)), body);
    /* Trees are drawn when they are first looked at: a page with many opens at once. */
    const draw = () => { if (node.open && !body.hasChildNodes()) body.append(...exampleBody(example, report).filter(Boolean)); };
    node.addEventListener("toggle", draw);
    node.draw = draw;
    if (open) node.open = true;
    draw();
    return {node, right: example.right, classes: [example.predicted, example.actual]};
}

function exampleSection(report) {
    const list = report.examples;
    if (!list || list.length === 0) return null;
    const items = list.map((example, i) => exampleItem(example, report, i === 0)), nothing = note("No example of this kind is shown.");
    let kind = "all";
    const refresh = () => {
        let any = false;
        items.forEach((item) => {
            const fits = (filter.value === "" || item.classes.includes(filter.value)) && (kind === "all" || String(item.right) === kind);
            item.node.hidden = !fits;
            any = any || fits;
        });
        nothing.hidden = any;
    };
    filter.watch(refresh);
    const both = items.some((i) => i.right === true) && items.some((i) => i.right === false);
    const drawn = list.some((e) => e.words || (e.functions.length > 0 && e.trees.some((tree) => tree.term !== undefined))), judged = items.some((i) => i.right !== undefined);
    const classes = report.model.classes.length > 0;
    return section("examples", "Examples", judged ? "The errors that the model is surest of, and the right predictions that it is least sure of, in turn for each class."
            : classes ? "The predictions that the model is least sure of." : report.quality ? "The largest errors, then the smallest." : "The largest values, then the smallest.",
        drawn && legend(["up", classes ? "speaks for the class" : "raises the value"], ["down", classes ? "speaks against it" : "lowers it"]),
        both && choice("Kind of examples", [["all", "all"], ["false", "errors"], ["true", "right"]], (value) => { kind = value; refresh(); }),
        items.map((i) => i.node), nothing);
}
