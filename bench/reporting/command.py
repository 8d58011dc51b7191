"""The command line of bench/report. Exit status: 0; 1: two runs do not agree; 2: bad command line or bad input."""
import argparse
import os
import sys

from . import compare, performance, report
from .errors import BadInput

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_DESCRIPTION = """Turns the JSON files that the benchmark programs write into Markdown and SVG.

  bench/report DIR [--out FILE] [--svg DIR]       tables of one results directory
  bench/report --compare DIR DIR [--agree SHARE] [--within SHARE]
                                                  do two runs of one preset agree?
  bench/report --performance bench/results > docs/performance.md
                                                  the newest of each GPU; SVG goes to docs/performance, or to --svg
"""


def _share(text):
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value


def _parse(arguments):
    parser = argparse.ArgumentParser(prog="report", description=_DESCRIPTION,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", metavar="DIR", help="results directory")
    parser.add_argument("--compare", nargs=2, metavar="DIR", help="compare two results directories")
    parser.add_argument("--performance", metavar="DIR", help="folder of results directories")
    parser.add_argument("--out", metavar="FILE", help="write Markdown here, not to standard output")
    parser.add_argument("--svg", metavar="DIR", help="write curves of efficiency here and refer to them")
    parser.add_argument("--agree", type=_share, metavar="SHARE",
                        help="of --compare: enough agree from this share on (0.9)")
    parser.add_argument("--within", type=_share, metavar="SHARE",
                        help="of --compare: medians that differ by no more than this part agree too (0)")
    chosen = parser.parse_args(arguments)
    if sum(x is not None for x in (chosen.directory, chosen.compare, chosen.performance)) != 1:
        parser.error("give a results directory, or --compare, or --performance")
    if chosen.compare and (chosen.out or chosen.svg):
        parser.error("--compare takes neither --out nor --svg")
    if not chosen.compare and (chosen.agree is not None or chosen.within is not None):
        parser.error("--agree and --within belong to --compare")
    return chosen


def _links(svg, out, beside):
    """How Markdown in `out` refers to the folder of pictures; without `out`, as from the folder `beside`."""
    return os.path.relpath(svg, os.path.dirname(os.path.abspath(out)) if out else beside).replace(os.sep, "/")


def _write(lines, out):
    text = "\n".join(lines).rstrip("\n") + "\n"
    if out is None:
        sys.stdout.write(text)
        return
    with open(out, "w", encoding="utf-8") as file:
        file.write(text)


def _run(chosen):
    if chosen.compare:
        agree = 0.9 if chosen.agree is None else chosen.agree
        return 0 if compare.compare(*chosen.compare, agree, chosen.within or 0) else 1
    if chosen.performance:
        svg = chosen.svg or os.path.join(_ROOT, "docs", "performance")
        links = _links(svg, chosen.out, os.path.dirname(os.path.abspath(svg)))
        _write(performance.lines_of(chosen.performance, svg, links), chosen.out)
        return 0
    links = _links(chosen.svg, chosen.out, os.getcwd()) if chosen.svg else ""
    title = [f"# {os.path.basename(os.path.abspath(chosen.directory))}", ""]
    _write(title + report.lines_of(chosen.directory, report.Pictures(chosen.svg, links)), chosen.out)
    return 0


def main(arguments):
    try:
        return _run(_parse(arguments))
    except BadInput as error:
        print(f"report: {error}", file=sys.stderr)
    except BrokenPipeError:  # whoever read has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"report: {error.filename}: {error.strerror}", file=sys.stderr)
    return 2
