/* Trees as SVG. A tree is a list of nodes, parents before their children: {label, parent, leaf, open, below, share}; `open`
 * marks a node of a fragment whose children are left open, `below` counts all nodes below one, drawn or not. */

const pen = document.createElement("canvas").getContext("2d");

function textWidth(text, leaf) {
    pen.font = (leaf ? "italic " : "") + "12.5px system-ui, sans-serif";
    return pen.measureText(text).width;
}

/* ------------------------------------------------------- reading fragments */

/* Brackets, as in data files: a backslash makes the next character part of a label; "(NP ...)" is a node left open. Null if
 * they are cut off. */
function readTree(text) {
    const nodes = [], stack = [];
    let i = 0;
    const label = () => {
        let out = "";
        while (i < text.length && !/[\s()]/.test(text[i])) {
            if (text[i] === "\\" && i + 1 < text.length && /[\s()\\]/.test(text[i + 1])) i++;
            out += text[i++];
        }
        return out;
    };
    const add = (name, leaf) => nodes.push({label: name, leaf, parent: stack.length ? stack[stack.length - 1] : -1,
                                            open: false, below: 0, share: 0}) - 1;
    while (i < text.length) {
        if (text[i] === "(") {
            i++;
            stack.push(add(label(), false));
        } else if (text[i] === ")") {
            if (stack.length === 0) return null;
            stack.pop();
            i++;
        } else if (/\s/.test(text[i])) {
            i++;
        } else {
            const start = i, name = label();
            if (stack.length === 0) return null;
            if (text.slice(start, i) === "...") nodes[stack[stack.length - 1]].open = true;
            else add(/^\\+\.\.\.$/.test(name) ? name.slice(1) : name, true);
        }
    }
    return stack.length === 0 && nodes.length > 0 ? nodes : null;
}

/* ------------------------------------------------------------------ layout */

/* Centres of the nodes: a subtree is as wide as its label or its children side by side. */
function layOut(nodes, gap) {
    const n = nodes.length, own = nodes.map((v) => textWidth(v.label, v.leaf) + 14);
    const inner = new Array(n).fill(0), wide = new Array(n), x = new Array(n), next = new Array(n), level = new Array(n);
    for (let i = n - 1; i >= 0; i--) {
        wide[i] = Math.max(own[i], inner[i] - (inner[i] > 0 ? gap : 0));
        if (nodes[i].parent >= 0) inner[nodes[i].parent] += wide[i] + gap;
    }
    let depth = 0;
    for (let i = 0; i < n; i++) {
        const p = nodes[i].parent, left = p < 0 ? 0 : next[p];
        level[i] = p < 0 ? 0 : level[p] + 1;
        depth = Math.max(depth, level[i]);
        if (p >= 0) next[p] += wide[i] + gap;
        x[i] = left + wide[i] / 2;
        next[i] = left + (wide[i] - Math.max(0, inner[i] - gap)) / 2;
    }
    return {x, own, level, depth, width: n ? wide[0] : 0};
}

/* ----------------------------------------------------------------- drawing */

function cut(text, most = 40) { return text.length > most ? text.slice(0, most - 1) + "\u2026" : text; }

/* options: step between levels, tip(node) or null, strength(node) from -1 to 1, click(node) for nodes with more below. */
function drawTree(all, options) {
    const nodes = all.map((v) => Object.assign({}, v, {label: cut(v.label === "" ? "\u2205" : v.label)}));
    const step = options.step, l = layOut(nodes, options.gap || 8), height = l.depth * step + 24 + (nodes.some((v) => v.hidden > 0) ? 14 : 0);
    const root = svg("svg", {class: "tree", width: at(l.width + 4), height: at(height),
                             viewBox: `-2 0 ${at(l.width + 4)} ${at(height)}`, role: "group", "aria-label": options.title});
    const middle = (i) => l.level[i] * step + 12;
    nodes.forEach((v, i) => {
        if (v.parent >= 0) root.append(svg("line", {class: "edge", x1: at(l.x[v.parent]), y1: at(middle(v.parent) + 10),
                                                    x2: at(l.x[i]), y2: at(middle(i) - 10)}));
    });
    nodes.forEach((v, i) => {
        const strength = options.strength ? options.strength(v) : 0, more = options.click && options.click(v);
        const group = svg("g", {class: "node" + (v.leaf ? " leaf" : "") + (v.open ? " open" : "") + (more ? " more" : ""),
                                "data-number": v.number, "data-tip": options.tip ? options.tip(v) + (more ? ". Enter: show more" : "") : null,
                                role: more ? "button" : null, onclick: more || null, onkeydown: more && ((event) => {
                                    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); more(); }
                                })});
        group.append(svg("rect", {x: at(l.x[i] - l.own[i] / 2 + 2), y: at(middle(i) - 10), width: at(l.own[i] - 4), height: 20,
                                  rx: 4, class: strength > 0 ? "up" : strength < 0 ? "down" : "none",
                                  "fill-opacity": at2(0.72 * Math.abs(strength))}),
                     svg("text", {x: at(l.x[i]), y: at(middle(i) + 4), "text-anchor": "middle"}, v.label));
        if (v.hidden > 0) group.append(svg("text", {class: "plus", x: at(l.x[i]), y: at(middle(i) + 21), "text-anchor": "middle"},
                                   "+" + count(v.hidden)));
        root.append(group);
    });
    return options.tip ? roving(root) : root;
}
function at2(v) { return v.toFixed(3); }

/* ------------------------------------------------------------- large trees */

const FIRST = 300, MORE = 120;

/* A tree of which FIRST nodes are drawn, and MORE with each click on a node that has some left. `nodes` are in order of depth. */
function largeTree(nodes, options) {
    const shown = nodes.map((v, i) => i < FIRST), box = el("div", {class: "canvas", tabindex: "0", role: "region",
                                                                   "aria-label": options.title});
    const children = nodes.map(() => []);
    nodes.forEach((v, i) => { if (v.parent >= 0) children[v.parent].push(i); });
    const expand = (start) => {
        const queue = [start];
        for (let left = MORE, k = 0; k < queue.length && left > 0; k++)
            for (const child of children[queue[k]]) {
                if (!shown[child] && left-- > 0) shown[child] = true;
                if (shown[child]) queue.push(child);
            }
        draw();
        const mark = box.querySelector(`[data-number="${start}"]`);
        if (mark) mark.focus();
    };
    const draw = () => {
        const place = [], visible = [];
        nodes.forEach((v, i) => {
            if (!shown[i]) return;
            place[i] = visible.length;
            visible.push(Object.assign({}, v, {parent: v.parent < 0 ? -1 : place[v.parent], number: i, hidden: v.below, drawn: 0,
                                               expands: children[i].some((c) => !shown[c])}));
        });
        for (let i = visible.length - 1; i > 0; i--) visible[visible[i].parent].drawn += 1 + visible[i].drawn;
        /* The number of those that are not drawn stands where the drawing ends. */
        visible.forEach((v) => { v.hidden = v.drawn === 0 || v.expands ? v.below - v.drawn : 0; });
        box.replaceChildren(drawTree(visible, Object.assign({}, options, {
            click: (v) => v.expands ? () => expand(v.number) : null})));
    };
    draw();
    requestAnimationFrame(() => { box.scrollLeft = (box.scrollWidth - box.clientWidth) / 2; }); /* to the root */
    return box;
}
