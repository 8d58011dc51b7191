"""Draws curves over a logarithmic axis as a small SVG: legible on light and dark ground, text as text, nothing loaded.

Called by metg.py. The same points give the same bytes: no dates, no identifiers, coordinates rounded.
"""
import math
from xml.sax.saxutils import escape

# Neither dark nor light, so that they stand out from both grounds; then the same again in dashes.
_COLOURS = ("#3b82d6", "#d9730d", "#2e9e5b", "#d64550", "#9065d6",
            "#a9744f", "#1a9aa8", "#d6589f", "#95951f", "#7f8a96")
_DASHES = ("", "6 3", "2 3")
_GREY = "#808080"
_LEFT, _TOP, _WIDTH, _HEIGHT, _LEGEND = 50, 34, 480, 280, 150


class Line:
    """A curve: (x, y) with x ascending. `strong` lines are thick; `look` numbers the colour."""

    def __init__(self, name, points, strong, look):
        self.name, self.points, self.strong, self.look = name, points, strong, look


def _ticks(low, high):
    """1, 2 and 5 of each decade, or powers of ten where there are too many, that cover low to high."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 2, 5), (1,)):
        all_ticks = [float(f"{step}e{d}") for d in decades for step in steps]
        first = max([t for t in all_ticks if t <= low * (1 + 1e-9)], default=all_ticks[0])
        last = min([t for t in all_ticks if t >= high * (1 - 1e-9)], default=all_ticks[-1])
        ticks = [t for t in all_ticks if first <= t <= last]
        if len(ticks) <= 12:
            break
    return ticks if len(ticks) > 1 else [first, first * 10]


def _place(value):
    return f"{value:.1f}".rstrip("0").rstrip(".")


def _text(x, y, text, anchor="middle", more=""):
    return f'<text x="{_place(x)}" y="{_place(y)}" text-anchor="{anchor}"{more}>{escape(text)}</text>'


def _rule(x1, y1, x2, y2, more):
    return f'<line x1="{_place(x1)}" y1="{_place(y1)}" x2="{_place(x2)}" y2="{_place(y2)}" {more}/>'


class _Axes:
    def __init__(self, lines):
        xs = [x for line in lines for x, _ in line.points]
        self.x_ticks = _ticks(min(xs), max(xs))
        self.top = max(1.0, math.ceil(max(y for line in lines for _, y in line.points) * 10 - 1e-6) / 10)

    def x(self, value):
        low, high = math.log(self.x_ticks[0]), math.log(self.x_ticks[-1])
        return _LEFT + (math.log(value) - low) / (high - low) * _WIDTH

    def y(self, value):
        return _TOP + (1 - value / self.top) * _HEIGHT

    def draw(self):
        right, bottom, faint = _LEFT + _WIDTH, _TOP + _HEIGHT, f'stroke="{_GREY}" stroke-opacity=".3"'
        parts = []
        for tick in self.x_ticks:
            parts += [_rule(self.x(tick), _TOP, self.x(tick), bottom, faint),
                      _text(self.x(tick), bottom + 16, f"{tick:g}")]
        for k in range(0, int(self.top * 10 + 1e-6) + 1, 2):
            parts += [_rule(_LEFT, self.y(k / 10), right, self.y(k / 10), faint),
                      _text(_LEFT - 6, self.y(k / 10) + 4, f"{k * 10} %", "end")]
        half = self.y(0.5)
        parts += [_rule(_LEFT, half, right, half, f'stroke="{_GREY}" stroke-dasharray="4 4"'),
                  _text(_LEFT + _WIDTH / 2, bottom + 34, "granularity, us (elapsed time x workers / tasks)")]
        return parts


def _curve(axes, line, place):
    colour = _COLOURS[line.look % len(_COLOURS)]
    style = f'stroke="{colour}" stroke-width="{2.5 if line.strong else 1.5}"'
    dash = _DASHES[line.look // len(_COLOURS) % len(_DASHES)]
    style += f' stroke-dasharray="{dash}"' if dash else ""
    points = [(axes.x(x), axes.y(y)) for x, y in line.points]
    path = " ".join(f"{_place(x)},{_place(y)}" for x, y in points)
    dots = "".join(f'<circle cx="{_place(x)}" cy="{_place(y)}" r="{3 if line.strong else 2}"/>' for x, y in points)
    legend_x, legend_y = _LEFT + _WIDTH + 14, _TOP + 8 + 17 * place
    weight = ' font-weight="bold"' if line.strong else ""
    return [f'<polyline points="{path}" fill="none" {style}/>',
            f'<g fill="{colour}">{dots}</g>',
            _rule(legend_x, legend_y, legend_x + 22, legend_y, style),
            _text(legend_x + 28, legend_y + 4, line.name, "start", weight)]


def draw(title, lines):
    """The picture's text."""
    axes = _Axes(lines)
    width = _LEFT + _WIDTH + _LEGEND
    height = max(_TOP + _HEIGHT + 46, _TOP + 17 * len(lines) + 10)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
             f'width="{width}" height="{height}" font-family="sans-serif" font-size="12" fill="{_GREY}">',
             f"<title>{escape(title)}</title>", _text(_LEFT, 18, title, "start", ' font-size="14"')]
    parts += axes.draw()
    for k, line in enumerate(lines):
        parts += _curve(axes, line, k)
    return "\n".join(parts + ["</svg>", ""])
