"""
The searches that a Python file describes: python3 -m acs.tune [options] FILE.py [ARGS...]

The file has a function searches(context). It returns a list of dicts, each with the arguments of acs.tune.search (family, space,
launches, and whatever else), and "file", where the result is saved. Options count instead of those of the file.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from typing import Any

import acs
import acs.tune

_WRONG_USE = 64


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="acs-tune --search", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, help="configurations to try")
    parser.add_argument("--sampler", choices=("random", "optuna"))
    parser.add_argument("--seed", type=int)
    parser.add_argument("--most", type=int, help="versions to keep")
    parser.add_argument("--shares", type=lambda text: [int(word) for word in text.split(",")], metavar="LIST",
                        help="percentages of the GPU, such as 100,50,20,10")
    parser.add_argument("file", metavar="FILE.py")
    parser.add_argument("args", nargs=argparse.REMAINDER, metavar="ARGS", help="sys.argv of the file")
    try:
        return parser.parse_args()
    except SystemExit as end:
        sys.exit(_WRONG_USE if end.code else 0)


def _searches(options: argparse.Namespace, context: acs.Context) -> list[dict[str, Any]]:
    sys.argv = [options.file, *options.args]
    spec = importlib.util.spec_from_file_location("acs_tune_file", options.file)
    if spec is None or spec.loader is None:
        raise ValueError(f"{options.file} is no Python file")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = getattr(module, "searches", None)
    if not callable(found):
        raise ValueError(f"{options.file} has no function searches(context)")
    searches = list(found(context))
    for wanted in searches:
        if not isinstance(wanted, dict) or "file" not in wanted:
            raise ValueError(f"searches(context) of {options.file} must return dicts with 'file' and arguments of acs.tune.search")
    return searches


def main() -> int:
    """Returns the exit status."""
    options = _options()
    given = {name: getattr(options, name) for name in ("trials", "sampler", "seed", "most", "shares")}
    try:
        with acs.Context() as context:
            for wanted in _searches(options, context):
                arguments = {"context": context, "progress": True, **wanted,
                             **{name: value for name, value in given.items() if value is not None}}
                path = arguments.pop("file")
                found = acs.tune.search(**arguments)
                print(found.table())
                found.save(path)
                print(f"saved: {path}", flush=True)
    except (OSError, ValueError, acs.Error) as error:
        print(f"acs-tune: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("acs-tune: stopped; searches that had ended are saved", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
