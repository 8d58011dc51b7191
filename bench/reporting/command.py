"""The command line of bench/report. Exit status: 0; 1: two runs do not agree; 2: bad command line or bad input."""
import argparse
import os
import sys

from . import compare, document, report, sets, summary
from .errors import BadInput

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_DESCRIPTION = """Turns the JSON files that the benchmark programs write into Markdown and SVG. A SET is a directory of such
files, or an archive <name>.tar.xz.

  bench/report SET [--out FILE] [--svg DIR]       its tables
  bench/report --compare SET SET [--agree SHARE] [--within SHARE]
                                                  do two runs of one preset agree?
  bench/report --pack DIR [--into DIR]            makes an archive of a directory, and its summary
  bench/report --summary ARCHIVE [--out FILE]     the summary of a set
  bench/report --performance bench/results [--into DIR]
                                                  docs/performance.md and docs/performance, from the newest files
"""


def _share(text):
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value


def _parse(arguments):
    parser = argparse.ArgumentParser(prog="report", description=_DESCRIPTION,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", nargs="?", metavar="SET", help="a set of results")
    parser.add_argument("--compare", nargs=2, metavar="SET", help="compare two sets")
    parser.add_argument("--performance", metavar="DIR", help="folder of sets")
    parser.add_argument("--pack", metavar="DIR", help="a directory of results")
    parser.add_argument("--summary", metavar="ARCHIVE", help="a packed set")
    parser.add_argument("--out", metavar="FILE", help="write Markdown here, not to standard output")
    parser.add_argument("--svg", metavar="DIR", help="write curves of efficiency here and refer to them")
    parser.add_argument("--into", metavar="DIR", help="of --pack and --performance: where files go (bench/results, docs)")
    parser.add_argument("--agree", type=_share, metavar="SHARE",
                        help="of --compare: enough agree from this share on (0.9)")
    parser.add_argument("--within", type=_share, metavar="SHARE",
                        help="of --compare: medians that differ by no more than this part agree too (0)")
    chosen = parser.parse_args(arguments)
    if sum(x is not None for x in (chosen.set, chosen.compare, chosen.performance, chosen.pack, chosen.summary)) != 1:
        parser.error("give a set, or one of --compare, --performance, --pack and --summary")
    for option, commands in (("out", "set summary"), ("svg", "set"), ("into", "performance pack"), ("agree", "compare"),
                             ("within", "compare")):
        if getattr(chosen, option) is not None and all(getattr(chosen, c) is None for c in commands.split()):
            parser.error(f"--{option} does not belong to this command")
    return chosen


def _links(svg, out):
    """How Markdown in `out` refers to the folder of pictures; without `out`, as from the current folder."""
    return os.path.relpath(svg, os.path.dirname(os.path.abspath(out)) if out else os.getcwd()).replace(os.sep, "/")


def _write(path, text):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _print(lines, out):
    text = "\n".join(lines).rstrip("\n") + "\n"
    if out is None:
        sys.stdout.write(text)
    else:
        _write(out, text)


def _pack(directory, into):
    results = sets.ResultSet(directory)
    if not results.parts():
        raise BadInput(f"{directory}: is not named <gpu>-<year>-<month>-<day>[-<suffix>]")
    lines = summary.lines_of(results)
    os.makedirs(into, exist_ok=True)
    sets.pack(results, os.path.join(into, results.name + sets.ENDING))
    _print(lines, os.path.join(into, results.name + ".md"))


def _run(chosen):
    if chosen.compare:
        agree = 0.9 if chosen.agree is None else chosen.agree
        return 0 if compare.compare(*chosen.compare, agree, chosen.within or 0) else 1
    if chosen.performance:
        for name, text in document.files_of(chosen.performance).items():
            _write(os.path.join(chosen.into or os.path.join(_ROOT, "docs"), name), text)
    elif chosen.pack:
        _pack(chosen.pack, chosen.into or os.path.join(_ROOT, "bench", "results"))
    elif chosen.summary:
        _print(summary.lines_of(sets.ResultSet(chosen.summary)), chosen.out)
    else:
        links = _links(chosen.svg, chosen.out) if chosen.svg else ""
        _print(report.lines_of(chosen.set, report.Pictures(chosen.svg, links)), chosen.out)
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
