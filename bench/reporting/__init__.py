"""Markdown and SVG from the result files of the benchmarks: see bench/report and bench/results/README.md."""
