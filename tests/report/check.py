"""What reports must do in a browser. Prints a line for each failure, then "N passed, M failed"."""

import os
import re
import sys
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser

folder = sys.argv[1]
browser = Browser()
passed = failed = 0


def page(name):
    return os.path.join(folder, name + ".html")


def check(what, good, seen=""):
    global passed, failed
    if good:
        passed += 1
    else:
        failed += 1
        print(f"FAIL {what} {seen}")


def count(selector):
    return browser.run(f"document.querySelectorAll({selector!r}).length")


def visible(selector):
    return browser.run(
        f"[...document.querySelectorAll({selector!r})].filter((e) => e.getClientRects().length > 0).length"
    )


def loads(name, sections, **how):
    problems = browser.open(page(name), **how)
    check(f"{name} {how}: no errors", problems == [], problems)
    check(f"{name} {how}: drawn to the end", browser.run("document.documentElement.dataset.ready") == "true")
    found = browser.run("[...document.querySelectorAll('main > section')].map((s) => s.id).join(' ')")
    check(f"{name}: sections", found == sections, found)
    check(f"{name} {how}: nothing sticks out", browser.run("document.documentElement.scrollWidth <= innerWidth"))
    check(f"{name}: no elements beyond the page's own", count("img, iframe, object, embed, link[rel=stylesheet]") == 0)


def choose_class(value):
    browser.run(f"""(() => {{ const s = document.getElementById('class-filter'); s.value = {value!r};
                    s.dispatchEvent(new Event('change')); }})()""")


def kinds():
    everything = "model quality scores features examples data"
    for how in ({}, {"dark": True}, {"width": 380, "height": 800}):
        loads("kinds", everything, **how)
    loads("kinds", everything)
    check("six classes to choose from", count("#class-filter option") == 7)
    check("histograms", count("#scores figure svg") >= 8)
    check("confusion matrix", count(".confusion .cell") == 36)
    check("fragments are drawn", count("#features svg.tree") > 50)
    check("the first example is open", count("#examples .example[open] svg.tree") == 1)
    check("nodes are coloured", count("#examples svg.tree rect.up") > 0 and count("#examples svg.tree rect.down") > 0)
    styles = browser.run("""(() => {
        const of = (selector, style) => getComputedStyle(document.querySelector('#examples svg.tree ' + selector))[style];
        return [of('.edge', 'stroke'), of('rect.up', 'fill'), of('rect.down', 'fill')]; })()""")
    check("edges and colours can be seen", "none" not in styles and len(set(styles)) == 3, styles)


def filtering():
    examples, groups = visible("#examples .example"), visible("#features .group")
    choose_class("LOC")
    shown = browser.run("""[...document.querySelectorAll('#examples .example')].filter((e) => e.getClientRects().length > 0)
                           .every((e) => e.querySelector('.verdict').textContent.includes('LOC'))""")
    check("the filter leaves examples of the class", shown and 0 < visible("#examples .example") < examples)
    check("the filter leaves features of the class", groups == 6 and visible("#features .group") == 1)
    check("the filter leaves scores of the class", visible("#scores figure") < 8)
    check("the filter marks its row", count("tr.chosen") == 1)
    choose_class("")
    check("all are back", visible("#examples .example") == examples and visible("#features .group") == 6)
    browser.run("document.querySelectorAll('#examples .choice button')[1].click()")
    check("errors only", visible("#examples .example[data-right=true]") == 0 and visible("#examples .example") > 0)
    browser.run("document.querySelectorAll('#examples .choice button')[0].click()")


def sorting():
    first = "document.querySelector('#quality table tbody tr').textContent"
    heads = "document.querySelectorAll('#quality table thead button')"
    before = browser.run(first)
    browser.run(heads + "[3].focus()")
    browser.press("Enter", number=13)
    values = browser.run(
        "[...document.querySelectorAll('#quality table:not(.confusion) tbody tr')]"
        ".map((r) => Number(r.children[3].textContent))"
    )
    check("a click sorts, the largest first", values == sorted(values, reverse=True), values)
    check("readers are told", browser.run(heads + "[3].parentElement.getAttribute('aria-sort')") == "descending")
    browser.run(heads + "[0].click()")
    check("names sort upwards", browser.run(first) == before)
    choose_class("LOC")
    browser.run(heads + "[3].click()")
    check("a row stays marked when the table is sorted", count("tr.chosen") == 1)
    choose_class("")


def keyboard():
    browser.run("document.querySelector('.confusion .cell').focus()")
    tip = "document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent"
    at_first = browser.run(tip)
    browser.press("ArrowRight", number=39)
    check("focus shows values", "predicted as" in at_first, at_first)
    check("arrows go on", browser.run(tip) not in ("", at_first), browser.run(tip))
    browser.press("Escape", number=27)
    check("Escape hides them", browser.run(tip) == "")
    stops = browser.run("document.querySelectorAll('.confusion [tabindex=\"0\"]').length")
    check("one stop for a drawing", stops == 1, stops)
    browser.run("document.querySelectorAll('#examples .example')[2].querySelector('summary').focus()")
    browser.press("Enter", number=13)
    browser.run("new Promise((done) => setTimeout(done, 50))")
    check(
        "Enter opens an example, and it is drawn",
        count("#examples .example:nth-of-type(3)[open] svg.tree, #examples .example[open] svg.tree") >= 2,
    )


def theme():
    colour = "getComputedStyle(document.body).backgroundColor"
    light = browser.run(colour)
    browser.run("document.querySelector('.theme').click()")
    dark = browser.run(colour)
    check("the button changes colours", light != dark)
    browser.run("document.querySelector('.theme').click()")
    check("and back", browser.run(colour) == light)
    browser.run("localStorage.clear()")
    browser.open(page("kinds"), dark=True)
    check("the system's choice counts", browser.run(colour) == dark, browser.run(colour))
    contrast = browser.run("""(() => { const n = (c) => c.match(/[0-9.]+/g).slice(0, 3).map(Number);
        const l = (c) => n(c).map((v) => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; })
            .reduce((s, v, i) => s + v * [.2126, .7152, .0722][i], 0);
        const s = getComputedStyle(document.querySelector('.note')), b = l(getComputedStyle(document.body).backgroundColor), t = l(s.color);
        return (Math.max(b, t) + .05) / (Math.min(b, t) + .05); })()""")
    check("small text can be read", contrast > 4.5, contrast)


def printing():
    browser.open(page("kinds"))
    browser.run("dispatchEvent(new Event('beforeprint'))")
    check(
        "on paper all is open and drawn",
        count("details:not([open])") == 0 and count("#examples .example svg.tree") >= 30,
    )
    browser.call("Emulation.setEmulatedMedia", media="print")
    check("without navigation", visible("nav") == 0)


def others():
    loads("model", "model features data")
    loads("bare", "model scores features examples data")
    loads("nasty", "model quality scores features examples data")
    check(
        "labels stay text",
        browser.run("document.title") == '</script><script>document.title="taken over"</script> \u2013 Espalier report',
        browser.run("document.title"),
    )
    check(
        "a label is shown as it is",
        browser.run("document.querySelector('#quality').textContent.includes('</script><img src=x')"),
    )
    loads("numbers", "model quality features examples data")
    check("points of a regression", count("#quality circle.point") == 60)
    loads("online", "model quality scores features examples data")
    check("learning curve", count("#model svg .line") == 2)
    check("values by symbol", browser.run("document.querySelector('#model').textContent.includes('Values by symbol')"))


def text(selector):
    return browser.run(f"(document.querySelector({selector!r}) || {{}}).textContent || ''")


def axes():
    for name, factor in ("millions", "\u00d710\u2076"), ("tiny", "\u00d710\u207b\u2076"):
        for how in ({}, {"width": 380, "height": 800}):
            loads(name, "model quality features examples data", **how)
            cut = browser.run("""[...document.querySelectorAll('#quality svg')].flatMap((s) => [...s.querySelectorAll('text')].filter((t) => {
                const a = s.getBoundingClientRect(), b = t.getBoundingClientRect();
                return b.left < a.left - 1 || b.right > a.right + 1 || b.top < a.top - 1; }).map((t) => t.textContent))""")
            check(f"{name} {how}: numbers of axes are inside", cut == [], cut)
        check(f"{name}: a common factor", factor in text("#quality figure svg"), text("#quality figure svg"))
        ticks = browser.run("[...document.querySelectorAll('#quality figure .tick')].map((t) => t.textContent)")
        check(f"{name}: short numbers", max(map(len, ticks)) <= 5, ticks)
    check(
        "a single value is a thin bar",
        browser.run(
            "Number(document.querySelectorAll('#quality figure')[3].querySelector('.column').getAttribute('width'))"
        )
        < 10,
    )


def cautions():
    browser.open(page("millions"))
    check(
        "what was trained on is told",
        "40 of 40\u00a0examples are also support examples" in text("#quality .tiles + .caution"),
        text("#quality .caution"),
    )
    browser.open(page("kinds"))
    check("but not of few", count("#quality .caution") == 0)
    loads("strange", "model quality scores features examples data")
    check(
        "unknown classes are told",
        "none of the classes of these data (colour, size)" in text("#quality .caution"),
        text("#quality .caution"),
    )
    check(
        "in place of zeros", count("#quality table:not(.confusion)") == 0 and count("#quality .confusion .cell") == 64
    )


def undefined():
    loads("some", "model quality scores features examples data")
    rows = browser.run(
        """[...document.querySelectorAll('#quality table:not(.confusion) tbody tr')].map((r) => [...r.children].map((c) => c.textContent))"""
    )
    foot = browser.run("[...document.querySelectorAll('#quality tfoot td')].map((c) => Number(c.textContent))")
    check(
        "recall without examples is not defined",
        all((r[2] == "\u2013") == (r[4] == "0") for r in rows) and rows[0][4] == "0",
        rows,
    )
    met = [r for r in rows if r[3] != "\u2013"]
    for column in (1, 2, 3):
        mean = sum(float(r[column].replace("\u2013", "0")) for r in met) / len(met)
        check("the means are those of the note", abs(mean - foot[column - 1]) < 2e-3, (mean, foot))


def few():
    loads("one", "model quality scores features examples data", width=380, height=800)
    check(
        "one example is one",
        text("#quality .lead").startswith("1 of 1\u00a0example of one.jsonl is predicted rightly"),
        text("#quality .lead"),
    )
    check("no curves of one example", count("#scores .line") == 0 and count("#scores figure") == 6)
    check(
        "no threshold outside of the plots",
        "threshold" not in text("#scores .lead") and count("#scores .mark") == 0,
        text("#scores .lead"),
    )
    browser.open(page("kinds"))
    check("but inside of them", "threshold" in text("#scores .lead") and count("#scores .mark") > 0)


def coloured_words():
    loads("words", "model quality scores features examples data")
    first = "#examples .example[open] "
    told = browser.run(f"""[...document.querySelectorAll({first + "summary .word"!r})].map((w) => [w.title.split(': ')[0].toLowerCase(), w.title.split(': ')[1],
        w.className.split(' ')[1], Number(w.style.getPropertyValue('--part'))])""")
    listed = browser.run(
        f"""Object.fromEntries([...document.querySelectorAll({first + ".sum tbody tr"!r})].map((r) => [r.children[2].textContent, r.children[0].textContent]))"""
    )
    check(
        "words have the contributions of the sum",
        len(told) > 4
        and sum(listed.get(w[0]) == w[1] for w in told) > 4
        and all(listed.get(w[0], w[1]) == w[1] for w in told),
        (told, listed),
    )
    check(
        "and its colours",
        all((w[2] == "down") == w[1].startswith("\u2212") for w in told) and max(w[3] for w in told) == 1,
        told,
    )
    check("with a legend", visible("#examples .legend") == 1)
    loads("patterns", "model quality scores features examples data")
    check("patterns of words have no colours", count("#examples .word") == 0 and count("#examples .legend") == 0)


def wide():
    for how in ({}, {"width": 380, "height": 800}):
        loads("wide", "model quality features examples data", **how)
        cut = browser.run(
            "[...document.querySelectorAll('#features .drawing')].filter((d) => d.scrollWidth > d.clientWidth + 1).length"
        )
        check(f"{how}: no fragment is cut", cut == 0 and "(S (CATEGORY0" in text("#features"), cut)
    terms = browser.run("[...document.querySelectorAll('#features .note code')].map((c) => [c.textContent, c.title])")
    digits = max(len(part) for term, _ in terms for part in re.findall(r"[0-9.]+", term))
    check(
        "six digits, and all of them at hand",
        len(terms) >= 2 and digits <= 8 and any(len(full) > len(short) for short, full in terms),
        terms,
    )
    check(
        "linear on vectors says nothing of sequences",
        text("#model .leaves").endswith("dot product of vectors"),
        text("#model .leaves"),
    )
    browser.open(page("words"))
    check("on words it does", "bag of lower-cased words" in text("#model .leaves"), text("#model .leaves"))


def pairs():
    for how in ({}, {"dark": True}, {"width": 380, "height": 800}):
        loads("pairs", "pairs", **how)
    loads("pairs", "pairs")
    check("as many pairs as asked for", count("#pairs .example") == 5)
    check("two trees side by side", count("#pairs .example[open] .side svg.tree") == 2)
    loads("found", "pairs")
    check("results of a search", count("#pairs .example") == 3)
    loads("sides", "pairs")
    check("names are text", "</script>" in text("#pairs .side h3"))
    shades = browser.run(
        "[...document.querySelectorAll('#pairs .side svg.tree')].map((s) => [...s.querySelectorAll('.node')].map((n) => "
        "n.textContent + ' ' + n.querySelector('rect').getAttribute('fill-opacity')).join(', ')).join('; ')"
    )
    first = "S 0.288, A 0.720, C 0.288, b 0.720, D 0.000, "
    check("what is shared is coloured", shades.startswith(first) and shades.endswith("D 0.000, d 0.000"), shades)
    loads("trunks", "pairs")
    check("large trees are lines", count("#pairs .outline") == 2 and count("#pairs .line.same") > 0)


def large():
    loads("large", "model quality scores features examples data")
    for i in range(count("#examples .example")):
        browser.run(f"document.querySelectorAll('#examples .example')[{i}].open = true")
    browser.run("new Promise((done) => setTimeout(done, 100))")
    most = "Math.max(...[...document.querySelectorAll('#examples .example')].map((e) => e.querySelectorAll('.node').length))"
    before = browser.run(most)
    check("a tree of 100,000 nodes is drawn in part", before == 300, before)
    browser.run("document.querySelector('#examples .node.more').focus()")
    browser.press("Enter", number=13)
    after = browser.run(most)
    check("a node opens on demand, within limits", before < after <= before + 120, after)
    check("the page stays small", os.path.getsize(page("large")) < 3e6, os.path.getsize(page("large")))


for part in (
    kinds,
    filtering,
    sorting,
    keyboard,
    theme,
    printing,
    others,
    axes,
    cautions,
    undefined,
    few,
    coloured_words,
    wide,
    pairs,
    large,
):
    try:
        part()
    except Exception:  # one part that breaks is one failure; the others go on
        check(part.__name__, False, traceback.format_exc())
browser.close()
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
