/* The page: head, sections, navigation, theme, printing. */

const report = JSON.parse(document.getElementById("data").textContent);

function subtitle() {
    const m = report.model, learner = LEARNERS[m.learner] || m.learner;
    const what = m.classes.length > 0 ? `for ${plural(m.classes.length, "class", "classes")}` : "for numbers";
    const judged = report.profile.support ? "" : report.quality ? `, judged on ${plural(report.profile.examples, "example")}`
                                                                : `, looking at ${plural(report.profile.examples, "example")}`;
    return `A ${learner} ${what} that keeps ${plural(m.support, "example")}${judged}${report.profile.name ? " of " + report.profile.name : ""}.`;
}

/* ------------------------------------------------------------------- theme */

function storedTheme() { try { return localStorage.getItem("espalier-theme"); } catch (error) { return null; } }
function isDark() {
    const set = document.documentElement.getAttribute("data-theme");
    return set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
function themeButton() {
    const button = el("button", {type: "button", class: "theme", onclick: () => set(isDark() ? "light" : "dark", true)});
    const label = () => {
        button.textContent = isDark() ? "\u2600" : "\u263e";
        button.setAttribute("aria-label", isDark() ? "Light colours" : "Dark colours");
        button.title = button.getAttribute("aria-label");
    };
    const set = (theme, keep) => {
        document.documentElement.setAttribute("data-theme", theme);
        try { if (keep) localStorage.setItem("espalier-theme", theme); } catch (error) { /* pages from files may not store */ }
        label();
    };
    const stored = storedTheme();
    if (stored === "dark" || stored === "light") set(stored, false);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
    label();
    return button;
}

/* -------------------------------------------------------------- navigation */

function classFilter() {
    const classes = report.model ? report.model.classes : [];
    if (classes.length < 2) return null;
    return el("label", {class: "filter"}, el("span", null, "Class"), el("select", {id: "class-filter", onchange: (event) => filter.set(event.target.value)},
        el("option", {value: ""}, "all"), classes.map((c) => el("option", {value: c}, c))));
}

function navigation() {
    const links = sections.map((s) => el("a", {href: "#" + s.id}, s.title));
    document.getElementById("nav").append(el("div", {class: "links"}, links), el("div", {class: "tools"}, classFilter(), themeButton()));
    if (!("IntersectionObserver" in window)) return;
    const seen = new IntersectionObserver((entries) => entries.forEach((entry) => {
        if (!entry.isIntersecting) return;
        links.forEach((a) => a.toggleAttribute("aria-current", a.getAttribute("href") === "#" + entry.target.id));
    }), {rootMargin: "-20% 0px -70% 0px"});
    document.querySelectorAll("main > section").forEach((s) => seen.observe(s));
}

/* On paper everything is open. */
function openAll() {
    document.querySelectorAll("details").forEach((d) => { d.open = true; if (d.draw) d.draw(); });
}

function finish() {
    navigation();
    document.getElementById("foot").append(`Made by espalier ${report.version}. This page needs no network and sends nothing.`);
    window.addEventListener("beforeprint", openAll);
    document.documentElement.setAttribute("data-ready", "true");
}

function head(lead) {
    document.title = report.title + " \u2013 Espalier report";
    document.getElementById("head").append(el("p", {class: "kind"}, "Espalier report"), el("h1", null, report.title), el("p", {class: "lead"}, lead));
}

function startPairs() {
    head(plural(report.pairs.length, report.search ? "result" : "pair") + (report.name ? " of " + report.name : "") + ".");
    document.getElementById("main").append(pairSection(report));
    finish();
}

function start() {
    const used = new Set(report.model.leaves.map((leaf) => leaf.column).filter(Boolean));
    report.profile.columns.forEach((c, i, all) => { c.used = used.has(c.name) || (used.size === 0 && all.length === 1) || report.profile.support; });
    head(subtitle());
    for (const make of [modelSection, qualitySection, scoreSection, featureSection, exampleSection, dataSection]) {
        const made = make(report);
        if (made) document.getElementById("main").append(made);
    }
    finish();
}

if (report.pairs) startPairs();
else start();
