"""docs/performance.md and docs/performance/*.svg must be what bench/report makes of bench/results; status 1: stale."""
import difflib
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def texts(directory):
    """{path: text} of the document and its pictures."""
    files = [directory / "performance.md", *sorted((directory / "performance").glob("*.svg"))]
    return {str(f.relative_to(directory)): f.read_text(encoding="utf-8") for f in files if f.exists()}


def main():
    with tempfile.TemporaryDirectory() as scratch:
        made = pathlib.Path(scratch)
        subprocess.run([ROOT / "bench" / "report", "--performance", ROOT / "bench" / "results",
                        "--out", made / "performance.md", "--svg", made / "performance"], check=True)
        wanted, kept = texts(made), texts(ROOT / "docs")
    # Links to the pictures are relative, so the text does not depend on where it is made.
    stale = [name for name in sorted({*wanted, *kept}) if wanted.get(name) != kept.get(name)]
    for name in stale:
        print("\n".join(difflib.unified_diff(kept.get(name, "").split("\n"), wanted.get(name, "").split("\n"),
                                             f"docs/{name}", "made now", lineterm="", n=1)))
        if name not in wanted:
            print(f"run: git rm docs/{name}")
    if stale:
        print("run: bench/report --performance bench/results > docs/performance.md")
    return 1 if stale else 0


sys.exit(main())
