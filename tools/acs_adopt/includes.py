"""Where the includes of ACS go in a file."""
import re

import acs_adopt.text as text

DIRECTIVE = re.compile(r"\s*#\s*(\w*)\s*([\s\S]*)")


def place(source, first):
    """The position behind the last include before the first edit that is in no condition; else behind the opening."""
    nesting, guard, best, previous = 0, None, None, None
    for begin, end in source.directives:
        if begin > first:
            break
        word, rest = DIRECTIVE.match(source.plain[begin:end]).groups()
        if word in ("if", "ifdef", "ifndef"):
            nesting += 1
        elif word == "endif":
            nesting -= 1
        elif word == "define" and previous == ("ifndef", (rest.split() or [""])[0]) and guard is None and nesting == 1:
            guard, best = 1, end
        elif word == "pragma" and rest.strip() == "once":
            best = end
        elif word == "include" and nesting == (guard or 0):
            braces = source.code[:begin].count("{") - source.code[:begin].count("}")
            if braces == 0:
                best = end
        previous = (word, (rest.split() or [""])[0])
    if best is not None:
        return min(best + 1, len(source.text))
    return 0 if not source.text[:first].lstrip().startswith("/*") else \
        source.text.find("\n", source.text.find("*/")) + 1


def apply(program, header):
    """Add the includes that the edits of each file need."""
    for source in program.sources:
        if not source.edits:
            continue
        edits = sorted(source.edits)
        new = "".join(edit[2] for edit in edits)
        wanted = ["<acs.h>"]
        if re.search(r"\bacs_cuda_|\bACS_OUTSIDE\b", new):
            wanted.append("<acs_adopt.hpp>")
        if header and "ACS_LAUNCH" in new:
            wanted.append('"' + header + '"')
            header = None
        have = [" ".join(source.text[b:e].split()) for b, e in source.directives]
        lines = ["#include " + name for name in wanted if "#include " + name not in have]
        if not lines:
            continue
        end = "\r\n" if "\r\n" in source.text else "\n"
        at = place(source, edits[0][0])
        lead = end if at and source.text[at - 1] != "\n" else ""
        source.edits.append((at, at, lead + "".join(line + end for line in lines)))
