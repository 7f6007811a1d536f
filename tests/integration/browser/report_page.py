"""report_page.py REPORT PICTURES: opens REPORT/report.html in a browser and uses it as a reader does."""

import pathlib
import re
import sys

from webdriver import Browser

ENTER, TAB, ESCAPE, DOWN = "\ue007", "\ue004", "\ue00c", "\ue015"
LIGHT, DARK = "rgb(255, 255, 255)", "rgb(20, 23, 26)"

report, pictures = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
url = (report / "report.html").as_uri()


def check(what, condition, seen=None):
    if not condition:
        sys.exit("FAILED: %s%s" % (what, "" if seen is None else ": saw %r" % (seen,)))


def column(page, table, heading):
    """The texts of a column, top to bottom, of the rows that are shown."""
    return page.run("""
        const section = document.getElementById(arguments[0]);
        const at = [...section.querySelectorAll('th')].findIndex(h => h.textContent === arguments[1]);
        return [...section.querySelectorAll('tbody tr')].filter(r => !r.hidden).map(r => r.cells[at].textContent);
        """, table, heading)


def head(page, table, heading):
    return page.run("""return [...document.querySelectorAll('#' + arguments[0] + ' th button')]
        .find(b => b.textContent === arguments[1]);""", table, heading)


def first_screen(page):
    sentences = page.run("return [...document.querySelectorAll('#answer .sentence')].map(p => p.textContent)")
    check("one to three sentences", 1 <= len(sentences) <= 3, sentences)
    plain = (report / "report.md").read_text().replace("\\", "")
    for sentence in sentences:
        check("report.md says the same", sentence in plain, sentence)
    bottom = page.run("return document.getElementById('answer').getBoundingClientRect().bottom")
    check("the answer is on the first screen", bottom < 700, bottom)
    check("nothing is fetched", page.run("return performance.getEntriesByType('resource').length") == 0)
    twice = page.run("""const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
        return ids.filter((id, i) => ids.indexOf(id) !== i);""")
    check("ids are there once", twice == [], twice[:5])
    check("figures are drawn in the page", page.run("return document.querySelectorAll('figure svg').length") >= 4)
    check("no planted script ran", page.run("return window.planted === undefined"))
    check("a planted script is shown as text", page.run("return document.body.textContent.includes('<script>window.planted')"))


def sorting(page):
    table, before = "gap-1", column(page, "gap-1", "loss")
    page.click(head(page, table, "loss"))
    up = [float(x) for x in column(page, table, "loss")]
    check("ascending", up == sorted(up) and up != [float(x) for x in before], up)
    page.click(head(page, table, "loss"))
    down = [float(x) for x in column(page, table, "loss")]
    check("descending", down == sorted(up, reverse=True), down)
    check("the head tells", page.run("return document.querySelectorAll('#gap-1 [aria-sort=descending]').length") == 1)
    page.click(head(page, table, "loss"))
    check("a third click restores", column(page, table, "loss") == before)
    gaps = [x for x in column(page, table, "gap")]
    for clicks in (1, 2):
        page.run("arguments[0].focus()", head(page, table, "gap"))
        page.press(ENTER)
        values = column(page, table, "gap")
        known = [float(x) for x in values if x != "-"]
        check("what is none comes last", values[len(known):] == ["-"] * gaps.count("-") and gaps.count("-") > 0, values)
        check("sorted from the keyboard", known == sorted(known, reverse=clicks == 2), known)
    page.press(ENTER)


def filtering(page):
    field, all_rows = page.find("#gap-1 input"), len(column(page, "gap-1", "delay"))
    page.type(field, "adamw delay:4")
    delays, optimizers = column(page, "gap-1", "delay"), column(page, "gap-1", "optimizer")
    check("rows of one delay are left", delays and set(delays) == {"4"} and set(optimizers) == {"adamw"}, delays)
    text = page.run("return document.querySelector('#gap-1 output').textContent")
    check("their number is told", text == "%d of %d rows" % (len(delays), all_rows), text)
    page.screenshot(pictures / "filtered.png")
    page.open(url)
    check("a reload keeps the filter", column(page, "gap-1", "delay") == delays)
    page.clear(page.find("#gap-1 input"))
    page.run("document.querySelector('#gap-1 input').dispatchEvent(new Event('input'))")
    check("all rows are back", len(column(page, "gap-1", "delay")) == all_rows)


def details(page):
    hidden = "return document.getElementById('detail').hidden"
    text = "return document.getElementById('detail').textContent"
    check("no detail at first", page.run(hidden))
    row = page.run("""const rows = [...document.querySelectorAll('#gap-1 tbody tr')];
        const row = rows.find(r => r.textContent.includes('ef'));
        row.scrollIntoView({block: 'center'});
        return row;""")
    page.hover(row)
    shown = page.run(text)
    check("hovering shows", not page.run(hidden))
    check("the difference is told", "differs from sync in: " in shown and "correction ef" in shown, shown)
    known = {path.name for path in (report / "../runs").resolve().glob("*/*")}
    ids = re.findall(r"\b[0-9a-f]{16}\b", shown)
    check("the runs are named", len(ids) >= 6 and set(ids) <= known, ids)
    page.screenshot(pictures / "hover.png")
    page.press(ESCAPE)
    check("escape hides", page.run(hidden))
    page.run("document.querySelector('#gap-1 tbody tr').focus()")
    first = page.run(text)
    check("focus shows", not page.run(hidden) and first != shown, first)
    page.press(DOWN)
    check("an arrow goes on", page.run(text) != first)
    check("one row is in the tab order", page.run("return document.querySelectorAll('#gap-1 tbody tr[tabindex=\"0\"]').length") == 1)
    page.press(ENTER)
    held = page.run(text)
    page.hover(page.find("#gap-1 tbody tr:last-child"))
    check("enter holds it", page.run(text) == held)
    page.press(ESCAPE)


def colours(page):
    back = "return getComputedStyle(document.body).backgroundColor"
    ink = "return getComputedStyle(document.querySelector('figure svg text').parentElement).fill"
    paper = "return getComputedStyle(document.querySelector('figure svg rect')).fill"
    seen = {}
    for scheme, colour in (("light", LIGHT), ("dark", DARK)):
        page.prefer(scheme)
        check(scheme + " as the system has it", page.run(back) == colour, page.run(back))
        seen[scheme] = page.run(ink)
        check("plots have no paper of their own", page.run(paper) == "none", page.run(paper))
        for part in ("answer", "plots", "gap-1", "made"):
            page.run("document.getElementById(arguments[0]).scrollIntoView()", part)
            page.screenshot(pictures / ("%s-%s.png" % (scheme, part)))
        for figure in page.run("return [...document.querySelectorAll('figure')].map(f => f.id)"):
            page.run("document.getElementById(arguments[0]).scrollIntoView()", figure)
            page.screenshot(pictures / ("%s-%s.png" % (scheme, figure)))
    check("plots change with it", seen["light"] != seen["dark"], seen)
    page.run("window.scrollTo(0, 0)")
    page.click(page.find("#scheme"))
    check("the switch gives the other one", page.run(back) == LIGHT, page.run(back))
    page.open(url)
    check("and it stays", page.run(back) == LIGHT, page.run(back))
    page.click(page.find("#scheme"))
    check("and back", page.run(back) == DARK, page.run(back))


with Browser() as page:
    page.open(url)
    first_screen(page)
    sorting(page)
    filtering(page)
    details(page)
    colours(page)
    page.print_page(pictures / "paper.pdf")
    page.resize(420, 900)
    wide = page.run("window.scrollTo(0, 0); return document.documentElement.scrollWidth - innerWidth")
    page.screenshot(pictures / "narrow.png")
    check("a narrow page does not scroll sideways", wide <= 0, wide)
    errors = page.errors()
    check("no error on the console", errors == [], errors)
    page.run("setTimeout(() => { throw new Error('planted'); }); return new Promise(done => setTimeout(done, 100))")
    check("an error would have been seen", any("planted" in error for error in page.errors()))
    page.run("document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:1/x.png'})); "
             "return new Promise(done => setTimeout(done, 100))")
    check("the page may fetch nothing", any("Content Security Policy" in error for error in page.errors()))
print("the page works")
