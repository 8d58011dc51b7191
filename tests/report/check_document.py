"""docs/performance.md, docs/performance and the summaries in bench/results must be what bench/report makes of the archives
there, and the first page must be short. Status 1: one of them is not so."""
import difflib
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPORT, RESULTS, DOCS = ROOT / "bench" / "report", ROOT / "bench" / "results", ROOT / "docs"
MOST_LINES = 300


def document(directory):
    """{path: text} of the first page and what lies behind it."""
    files = [directory / "performance.md", *(directory / "performance").glob("*")]
    return {f"docs/{f.relative_to(directory)}": f.read_text(encoding="utf-8") for f in files if f.exists()}


def made_document():
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([REPORT, "--performance", RESULTS, "--into", scratch], check=True)
        return document(pathlib.Path(scratch))


def made_summaries():
    return {f"bench/results/{archive.name.removesuffix('.tar.xz')}.md":
            subprocess.run([REPORT, "--summary", archive], check=True, capture_output=True, text=True).stdout
            for archive in RESULTS.glob("*.tar.xz")}


def kept_summaries():
    return {f"bench/results/{file.name}": file.read_text(encoding="utf-8")
            for file in RESULTS.glob("*.md") if file.name != "README.md"}


def is_stale(kept, made, command):
    """Prints how they differ, and what to run."""
    stale = [name for name in sorted({*made, *kept}) if made.get(name) != kept.get(name)]
    for name in stale:
        print("\n".join(difflib.unified_diff(kept.get(name, "").split("\n"), made.get(name, "").split("\n"),
                                             name, "made now", lineterm="", n=1)))
        print(f"run: {command.format(name.removesuffix('.md'), name) if name in made else f'git rm {name}'}")
    return bool(stale)


def main():
    kept = document(DOCS)
    bad = is_stale(kept, made_document(), "bench/report --performance bench/results")
    bad |= is_stale(kept_summaries(), made_summaries(), "bench/report --summary {}.tar.xz --out {}")
    lines = kept["docs/performance.md"].count("\n")
    if lines > MOST_LINES:
        print(f"docs/performance.md has {lines} lines; at most {MOST_LINES}, the rest belongs on the pages behind it")
        bad = True
    return 1 if bad else 0


sys.exit(main())
