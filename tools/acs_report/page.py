"""The page: its template, styles and scripts joined into one file, with recordings in it."""
import os

HERE = os.path.dirname(os.path.realpath(__file__))
PLACES = [os.path.join(HERE, "page"), os.path.join(HERE, "..", "..", "src", "report",
    "page")]  # installed; in the source tree
SCRIPTS = ["model.js", "curves.js", "words.js", "draw.js", "rows.js", "paint.js", "timeline.js", "memory.js", "tables.js",
    "sections.js", "compare.js", "main.js"]  # in this order, as in page.cmake
STYLE_MARK, DATA_MARK, SCRIPT_MARK = "/*ACS_STYLE*/", "/*ACS_DATA*/", "/*ACS_SCRIPT*/"


class NoTemplate(Exception):
    """The parts of the page are not where they should be."""


def _folder():
    for place in PLACES:
        if os.path.isfile(os.path.join(place, "page.html")):
            return place
    raise NoTemplate("the page's template is missing: there is no page.html in %s" % " or ".join(map(os.path.normpath,
        PLACES)))


def _read(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


def halves():
    """The text of the page before its data, and behind."""
    folder = _folder()
    before, behind = _read(folder, "page.html").split(DATA_MARK)
    before = before.replace(STYLE_MARK, _read(folder, "page.css"))
    return before, behind.replace(SCRIPT_MARK, "".join(_read(folder, name) for name in SCRIPTS))


def made(texts):
    """The page of recordings, which come as JSON. No '<' of theirs can end the element in which they are."""
    before, behind = halves()
    data = texts[0] if len(texts) == 1 else "[%s]" % ",".join(texts)
    return before + data.replace("<", "\\u003c") + behind
