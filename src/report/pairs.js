/* Pairs of trees side by side. A node is shared if the other tree has one with the same production, its label over those of
 * its children, as st, sst and sasst match nodes; it is equal if the whole subtree is there as well. */

function pairNodes(text) {
    const nodes = readTree(text), children = nodes.map(() => []);
    nodes.forEach((v, i) => { if (v.parent >= 0) children[v.parent].push(i); });
    const ids = pairNodes.ids;
    const id = (key) => { if (!ids.has(key)) ids.set(key, ids.size); return ids.get(key); };
    for (let i = nodes.length - 1; i >= 0; i--) { /* children stand behind their parents */
        const v = nodes[i], below = children[i];
        v.leaf = below.length === 0;
        v.below = below.reduce((sum, c) => sum + 1 + nodes[c].below, 0);
        v.production = v.leaf ? -1 : id("p" + JSON.stringify([v.label, below.map((c) => [nodes[c].label, nodes[c].leaf])]));
        v.whole = id("w" + JSON.stringify([v.label, below.map((c) => nodes[c].whole)]));
    }
    /* In order of depth, as large trees are drawn. */
    const order = [0], place = [0];
    for (let k = 0; k < order.length; k++) for (const c of children[order[k]]) { place[c] = order.length; order.push(c); }
    return order.map((i) => Object.assign(nodes[i], {parent: nodes[i].parent < 0 ? -1 : place[nodes[i].parent]}));
}
pairNodes.ids = new Map();

/* share: 1 of equal subtrees, 0.4 of productions, 0 of what the other tree lacks. A word is as its node. */
function markShared(nodes, other) {
    const productions = new Set(other.map((v) => v.production)), wholes = new Set(other.filter((v) => !v.leaf).map((v) => v.whole));
    let inner = 0, shared = 0;
    for (const v of nodes) {
        if (v.leaf) { v.share = v.parent < 0 ? 0 : nodes[v.parent].share; continue; }
        v.share = wholes.has(v.whole) ? 1 : productions.has(v.production) ? 0.4 : 0;
        inner++;
        if (v.share > 0) shared++;
    }
    return {inner, shared};
}

const DRAWN = 80, LINES = 1500;

/* Large trees as lines, indented by depth; a node whose children are all leaves is one line with them. */
function outline(nodes, options) {
    const children = nodes.map(() => []), lines = [], stack = [[0, 0]];
    nodes.forEach((v, i) => { if (v.parent >= 0) children[v.parent].push(i); });
    while (stack.length > 0 && lines.length < LINES) {
        const [i, depth] = stack.pop(), v = nodes[i], below = children[i], flat = below.every((c) => nodes[c].leaf);
        const kind = v.share === 1 ? " same" : v.share > 0 ? " like" : "";
        lines.push(el("div", {class: "line" + kind, style: `--depth:${depth}`}, el("span", {"data-tip": options.tip(v)}, cut(v.label)),
                      flat && below.map((c) => [" ", el("em", null, cut(nodes[c].label))])));
        if (!flat) for (let k = below.length - 1; k >= 0; k--) stack.push([below[k], depth + 1]);
    }
    return [el("div", {class: "canvas outline", tabindex: "0", role: "region", "aria-label": options.title}, lines),
            stack.length > 0 && note(`The first ${count(LINES)} lines of the tree.`)];
}

function pairSide(name, nodes, found) {
    const kinds = {1: "the other tree has this subtree", 0.4: "the other tree has this production", 0: "only here"};
    const options = {step: 42, title: "Tree of " + name, strength: (v) => v.share, tip: (v) => `${v.label}: ${kinds[v.share]}`};
    return el("div", {class: "side"}, el("h3", null, el("code", null, name)),
        note(`${plural(nodes.length, "node")}; ${count(found.shared)} of ${plural(found.inner, "production")} shared`),
        nodes.length > DRAWN ? outline(nodes, options) : largeTree(nodes, options));
}

function pairTrees(pair, tree) {
    const made = [tree.first, tree.second].map((text) => text === undefined ? null : pairNodes(text));
    const caption = pair.trees.length > 1 && note(el("code", null, tree.column));
    if (made.includes(null) || made.some((nodes) => nodes.length === 0))
        return [caption, note("A tree of more than a million characters is not part of this page.")];
    const found = [markShared(made[0], made[1]), markShared(made[1], made[0])];
    return [caption, el("div", {class: "sides"}, pairSide(pair.first, made[0], found[0]), pairSide(pair.second, made[1], found[1]))];
}

function pairItem(pair, open) {
    const body = el("div", {class: "body"});
    const node = el("details", {class: "example pair"}, el("summary", null, el("span", {class: "verdict"}, fixed(pair.similarity)),
        el("span", {class: "names"}, el("code", null, pair.first), " \u2194 ", el("code", null, pair.second))), body);
    const draw = () => { if (node.open && !body.hasChildNodes()) body.append(...pair.trees.flatMap((tree) => pairTrees(pair, tree)).filter(Boolean)); };
    node.addEventListener("toggle", draw);
    node.draw = draw;
    if (open) node.open = true;
    draw();
    return node;
}

function pairSection(report) {
    return section("pairs", report.search ? "Queries and what was found" : "Pairs",
        "Two trees side by side, with what they share. Open a line to see its trees.",
        legend(["up", "the other tree has the whole subtree (dark), or the production (light)"]),
        report.pairs.map((pair, i) => pairItem(pair, i === 0)),
        report.left > 0 && note(`${plural(report.left, "more line")} of the list ${report.left === 1 ? "is" : "are"} not shown.`));
}
