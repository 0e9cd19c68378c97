/* Elements, numbers, tables, tooltips and the class filter: what all sections use. Text from data only ever becomes text
 * nodes and attribute values, never markup. */

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
    for (const name of Object.keys(attributes || {})) {
        const value = attributes[name];
        if (value === null || value === undefined || value === false) continue;
        if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
        else node.setAttribute(name, value === true ? "" : value);
    }
    for (const child of children.flat(Infinity))
        if (child !== null && child !== undefined && child !== false) node.append(child);
    return node;
}
function el(tag, attributes, ...children) { return fill(document.createElement(tag), attributes, children); }
function svg(tag, attributes, ...children) { return fill(document.createElementNS(SVG, tag), attributes, children); }

/* ----------------------------------------------------------------- numbers */

function count(n) { return String(n).replace(/\B(?=(\d{3})+$)/g, "\u2009"); }
function minus(text) { return text.replace(/-/g, "\u2212"); }
function num(v, digits = 3) {
    if (v === null || v === undefined) return "\u2013";
    const size = Math.abs(v);
    if (v === 0) return "0";
    if (Number.isInteger(v) && size < 1e6) return minus(size < 1e4 ? String(v) : count(v));
    if (size >= 1e4 && size < 1e6) return minus(count(Math.round(v)));
    return minus(size >= 1e6 || size < 1e-4 ? v.toExponential(digits - 1) : String(Number(v.toPrecision(digits))));
}
function fixed(v, digits = 3) { return minus(v.toFixed(digits)); }
/* Three digits, zeros kept, so that numbers below each other are alike. */
function signed(v) {
    const size = Math.abs(v);
    return (v > 0 ? "+" : "") + (size >= 1e-3 && size < 1e3 ? minus(v.toPrecision(3)) : num(v));
}
function percent(part) {
    const v = 100 * part;
    return (v > 0 && v < 10 && !Number.isInteger(Number(v.toFixed(6))) ? v.toFixed(1) : v.toFixed(0)) + "\u2009%";
}
function plural(n, one, many) { return count(n) + "\u00a0" + (n === 1 ? one : many || one + "s"); }

/* ---------------------------------------------------------------- tooltips */

const tip = document.getElementById("tip");

let tipped = null;

function showTip(target) {
    const box = target.getBoundingClientRect();
    tipped = target;
    tip.textContent = target.getAttribute("data-tip");
    tip.hidden = false;
    const x = box.left + box.width / 2 - tip.offsetWidth / 2, above = box.top - tip.offsetHeight - 8;
    tip.style.left = Math.max(8, Math.min(x, document.documentElement.clientWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = (above > 4 ? above : box.bottom + 8) + "px";
}
function hideTip() { tip.hidden = true; tipped = null; }
function tipOf(event) { return event.target.closest ? event.target.closest("[data-tip]") : null; }
for (const kind of ["mouseover", "focusin"])
    document.addEventListener(kind, (event) => { const at = tipOf(event); if (at) showTip(at); else hideTip(); });
for (const kind of ["mouseout", "focusout"]) document.addEventListener(kind, hideTip);
/* Moving the focus may scroll; the mark that has it keeps its values. */
document.addEventListener("scroll", () => { if (tipped && tipped === document.activeElement) showTip(tipped); else hideTip(); }, true);
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });

/* One stop of the Tab key for all marks of a drawing; arrows go from mark to mark, `columns` of them in a row. */
function roving(container, columns = 1) {
    const marks = Array.from(container.querySelectorAll("[data-tip]"));
    marks.forEach((mark, i) => mark.setAttribute("tabindex", i === 0 ? "0" : "-1"));
    container.addEventListener("keydown", (event) => {
        const steps = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns,
                       Home: -marks.length, End: marks.length};
        const at = marks.indexOf(event.target);
        if (at < 0 || !(event.key in steps)) return;
        event.preventDefault();
        const next = marks[Math.max(0, Math.min(marks.length - 1, at + steps[event.key]))];
        marks[at].setAttribute("tabindex", "-1");
        next.setAttribute("tabindex", "0");
        next.focus();
    });
    return container;
}

/* ------------------------------------------------------------------ tables */

/* A part of a whole as a bar behind its number. */
function bar(part, text, kind = "") {
    return el("span", {class: "bar " + kind, style: "--part:" + Math.max(0, Math.min(1, part || 0)).toFixed(4)}, text);
}

/* column: {title, value(row), show(row), number}; rows beyond `limit` wait for a button. */
function table(caption, columns, rows, options = {}) {
    const body = el("tbody"), heads = [];
    let shown = options.limit && rows.length > options.limit * 1.25 ? options.limit : rows.length;
    const mark = (value) => body.querySelectorAll("tr").forEach((row) =>
        row.classList.toggle("chosen", value !== "" && row.getAttribute("data-class") === value));
    const fillBody = () => { body.replaceChildren(...rows.slice(0, shown).map((row) => el("tr", {"data-class": row.class},
        columns.map((c, i) => el(i === 0 ? "th" : "td", {scope: i === 0 ? "row" : null, class: c.number ? "number" : null},
            c.show ? c.show(row) : c.value(row)))))); mark(filter.value); };
    const sortBy = (column, head) => {
        const down = head.getAttribute("aria-sort") === "descending" || (!head.hasAttribute("aria-sort") && !column.number);
        heads.forEach((h) => h.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "ascending" : "descending");
        rows = rows.slice().sort((a, b) => {
            const x = column.value(a), y = column.value(b), order = x < y ? -1 : x > y ? 1 : 0;
            return down ? order : -order;
        });
        fillBody();
    };
    for (const column of columns) {
        const head = el("th", {scope: "col", class: column.number ? "number" : null});
        head.append(el("button", {type: "button", title: column.help || "sort", onclick: () => sortBy(column, head)},
                       column.title));
        heads.push(head);
    }
    filter.watch(mark);
    fillBody();
    const made = el("table", {class: options.kind || null}, caption && el("caption", null, caption),
                    el("thead", null, el("tr", null, heads)), body, options.foot);
    const more = shown < rows.length && el("button", {type: "button", class: "more", onclick: (event) => {
        shown = rows.length;
        fillBody();
        event.target.remove();
    }}, "Show all " + count(rows.length));
    return el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption || "Table"}, made, more);
}

/* ------------------------------------------------------------ class filter */

const filter = {
    value: "",
    listeners: [],
    watch(listener) { this.listeners.push(listener); listener(this.value); },
    set(value) { this.value = value; this.listeners.forEach((listener) => listener(value)); }
};

/* Shows the elements whose classes fit; `note` says when nothing is left. */
function filtered(items, classesOf, note) {
    filter.watch((value) => {
        let any = false;
        items.forEach((item) => {
            const fits = value === "" || classesOf(item).includes(value);
            item.node.hidden = !fits;
            any = any || fits;
        });
        if (note) note.hidden = any;
    });
}

/* ---------------------------------------------------------------- sections */

const sections = [];

function section(id, title, lead, ...content) {
    sections.push({id, title});
    return el("section", {id, "aria-labelledby": id + "-title"}, el("h2", {id: id + "-title"}, title),
              lead && el("p", {class: "lead"}, lead), content);
}
function figure(title, drawing, note) {
    return el("figure", null, el("figcaption", null, title), drawing, note && el("p", {class: "note"}, note));
}
function note(...content) { return el("p", {class: "note"}, ...content); }
function legend(...entries) {
    return el("p", {class: "legend"}, entries.map((e) => el("span", {class: "key " + e[0]}, e[1])));
}
/* Buttons of which one is pressed; `choose` gets its value. */
function choice(label, entries, choose) {
    const buttons = entries.map((entry, i) => el("button", {type: "button", "aria-pressed": i === 0 ? "true" : "false",
        onclick: (event) => {
            buttons.forEach((b) => b.setAttribute("aria-pressed", b === event.target ? "true" : "false"));
            choose(entry[0]);
        }}, entry[1]));
    return el("div", {class: "choice", role: "group", "aria-label": label}, buttons);
}
