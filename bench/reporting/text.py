"""How numbers, tables and remarks look in Markdown.

Used by whatever writes a section; knows nothing of benchmarks. The same input gives the same text.
"""


def number(value):
    """Three digits that matter, without an exponent."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 9.995 else f"{value:.2f}" if size >= 0.9995 else f"{value:.3f}"


def plain(value):
    """As short as it can be said: for sizes and settings."""
    return "-" if value is None else f"{value:.0f}" if value == int(value) else f"{value:g}"


def ranged(spread):
    """`5.43 (5.42-5.52)`: median, least and most."""
    return f"{number(spread.median)} ({number(spread.low)}-{number(spread.high)})"


def escaped(text):
    return str(text).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def code(text):
    text = " ".join(str(text).split()).replace("`", "'").replace("|", "\\|")
    return f"`{text}`" if text else "-"


def command(words):
    """A command as it was typed, but for where its program lay and where it wrote."""
    words = list(words)
    for option in ("--json", "--out"):
        if option in words:
            at = words.index(option)
            del words[at:at + 2]
    return " ".join(words[:1] and [words[0].rsplit("/", 1)[-1]] + words[1:])


def table(head, rows):
    """Lines of a table. Cells are Markdown already."""
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join(["---"] + ["--:"] * (len(head) - 1)) + " |"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows] + [""]


def words_table(head, rows):
    """As table(), with text in all columns."""
    lines = table(head, rows)
    lines[1] = lines[1].replace("--:", "---")
    return lines


class Remarks:
    """Texts that belong to cells, said once each under the table: by text, then by who, then by which columns."""

    def __init__(self, title, columns):
        self.title, self.columns, self.texts = title, list(columns), {}

    def add(self, text, who, column):
        if text:
            self.texts.setdefault(text, {}).setdefault(who, []).append(column)

    def _who(self, who, columns):
        everywhere = len(set(columns)) == len(set(self.columns)) > 1
        return who if everywhere or len(self.columns) == 1 else f"{who} ({', '.join(dict.fromkeys(columns))})"

    def lines(self):
        if not self.texts:
            return []
        lines = [f"{self.title}:", ""]
        for text, whose in self.texts.items():
            lines.append(f"- {', '.join(self._who(w, c) for w, c in whose.items())}: {escaped(text)}")
        return lines + [""]


class TableRemarks:
    """The three kinds of remarks under a table of runners."""

    def __init__(self, columns):
        self.kinds = [(Remarks("**WRONG**", columns), "wrong"), (Remarks("Left out", columns), "left_out"),
                      (Remarks("Settings and notes", columns), "remark")]

    def add(self, outcome, column):
        for remarks, kind in self.kinds:
            remarks.add(getattr(outcome, kind), f"`{outcome.name}`", column)

    def lines(self):
        return [line for remarks, _ in self.kinds for line in remarks.lines()]


def cell(row, outcome, shown, loses=None):
    """A runner's cell: what `shown` says of its outcome, or why there is no time; marked where ACS loses."""
    if outcome is None:
        return "-"
    if outcome.wrong:
        return "**WRONG**"
    if outcome.left_out:
        return "left out"
    return shown(outcome) + (" (loses)" if (loses or row.loses)(outcome) else "")
