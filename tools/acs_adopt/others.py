"""The rule for calls of functions that these files do not define: those that are given what is of the GPU may launch work."""
import re

import acs_adopt.gpu_values as gpu_values
import acs_adopt.objects as objects
import acs_adopt.program as programs
import acs_adopt.text as text

# Functions that are known to launch nothing, whatever they are given: C, POSIX, OpenMP, and the builtins of compilers.
HOST = re.compile(
    r"(?:v?[fsd]?n?w?printf|v?f?w?scanf|sscanf|f?puts|puts|putchar|f?putc|perror|mem(?:cpy|set|move|cmp|chr)|str\w+|ato\w+|"
    r"(?:m|c|re|aligned_)alloc|free|posix_memalign|f(?:open|close|read|write|flush|seek|tell|gets|eof|error)|read|write|open|close|"
    r"mmap|munmap|m(?:un)?lock|madvise|exit|_exit|abort|atexit|assert|static_assert|getenv|setenv|system|time|clock\w*|"
    r"gettimeofday|usleep|sleep|s?rand\w*|drand48|qsort|bsearch|l?abs|min|max|"
    r"(?:fabs|f?min|f?max|r?sqrt|cbrt|pow|exp(?:2|10|m1)?|log(?:2|10|1p|b)?|a?(?:sin|cos|tan)h?|atan2|hypot|fma|fmod|ceil|floor|"
    r"l?l?round|trunc|l?l?rint|nearbyint|copysign|remainder|[lt]gamma|erfc?|ldexp|frexp|modf)[fl]?|"
    r"swap|pthread_\w+|omp_\w+|getopt\w*|dl(?:open|sym|close)|raise|signal|isnan|isinf|isfinite|make_\w+|tie|"
    r"(?:device|raw)_pointer_cast|__builtin_\w+|nvtx\w+|ncclGroup\w+|cuda\w+|cu[A-Z]\w*|"
    r"(?:cublas|cufft|cusparse|cusolver|curand|npp|cudnn|nvjpeg)[A-Z]\w*|npp\w+|dim3|acs_\w+|ACS_\w+|get|data|size|begin|end|c?begin|"
    r"c?end|move|forward|addressof|to_string|operator|unique_ptr|shared_ptr|vector|array|span|string|function|map|set|pair|tuple|"
    r"lock_guard|unique_lock|thread|async|__\w+)$")
# Those of them that are no names a program would take for a function of its own.
RESERVED = re.compile(r"(?:cuda\w+|cu[A-Z]\w*|(?:cublas|cufft|cusparse|cusolver|curand|npp|cudnn|nvjpeg)[A-Z]\w*|npp\w+|nvtx\w+|"
                      r"ncclGroup\w+|acs_\w+|ACS_\w+|__\w+)$")
# Members of containers, streams, smart pointers and threads of the standard library: not listed where the type is not known.
HOST_MEMBER = re.compile(
    r"(?:push_(?:back|front)|pop_(?:back|front)|emplace\w*|insert\w*|erase|clear|reserve|resize|assign|swap|reset|release|get|data|"
    r"c?r?begin|c?r?end|size|length|capacity|empty|at|front|back|find\w*|count|contains|(?:lower|upper)_bound|c_str|str|substr|"
    r"append|first|second|top|pop|push|write|read|open|close|join|detach|lock|unlock|load|store|exchange|use_count|value|"
    r"has_value|setf|precision|width|fill|good|eof|fail)$")
# Members of containers on the GPU that do no work.
SIZES = re.compile(r"(?:size|max_size|capacity|empty|data|get|c?r?begin|c?r?end)$")
# Calls that only make, describe or end something, where they are given no memory.
SET_UP = re.compile(r"(?:.*(?:Create|Destroy|Init(?!_)|Finali[sz]e|Get|Set|Free|Query|Version|Handle|Stream|Size|Error|Descriptor|"
                    r"Abort|Count|Rank)|\w+_(?:create|destroy|init|finali[sz]e|get|set|free|query|version)(?:_|$)|"
                    r"(?:create|destroy|init|finali[sz]e|get|set|free|query)(?:[A-Z_]|$))")
DEVICE_LAMBDA = re.compile(r"\]\s*(?:(?:__host__|__device__|__global__)\s*)*__device__[^{};]*\{")


def device_lambdas(code):
    """The bodies of lambdas that run on the GPU."""
    found = []
    for match in DEVICE_LAMBDA.finditer(code):
        found.append((match.start(), text.closing(code, match.end() - 1) + 1))
    return found


class Others:
    """What the rule asks of a program."""

    def __init__(self, program):
        self.program = program
        self.values = gpu_values.Values(program)
        self.objects = objects.Objects(program, self.values)
        self.own = {f.name for found in program.functions.values() for f in found if not f.member}
        self.own |= set(program.kernels) | set(program.types)
        self.prototypes = set()  # functions that the files declare
        self.declared = set()  # by these files, so no macros of headers that were not given
        self.aliases = {}
        for source in program.everything:
            code = source.squeezed
            self.own.update(re.findall(r"\b(?:class|struct|union|enum) (?:\w+ )*?(\w+) ?(?:final ?)?[:{]", code))
            self.own.update(re.findall(r"\b(?:class|typename) (?:\.\.\. ?)?(\w+)", code))
            self.own.update(re.findall(r"\bauto ?[&*]* ?(\w+) ?= ?\[", code))
            self.aliases.update(re.findall(r"\bnamespace (\w+) ?= ?(?:::)?([\w:]+) ?;", code))
            self.declared.update(m.group(2) for m in re.finditer(r"(\w+)[>*& ]+(\w+) ?\([^;{}]*\)[^;{}()]*;", code)
                                 if m.group(1) not in programs.NO_TYPE)
            self.prototypes |= prototypes(program, source)

    def resolve(self, name):
        """A qualified name, with the alias of a namespace replaced."""
        name = re.sub(r"^::|\s+", "", name)
        first = name.split("::")[0]
        return self.aliases[first] + name[len(first):] if first in self.aliases and "::" in name else name

    def judge(self, call):
        """
        What a call may do: "work" of the GPU, "unknown", since nothing of the GPU is seen in it, or None: none.
        """
        name, chain = call.name, self.resolve(re.sub(r"<.*?>", "", call.chain))
        if name in gpu_values.KEYWORDS or name in programs.NUMBERS or self.program.is_macro(name) or \
                chain.startswith(("std::", "acs::", "cuda::")):
            return None
        if text.word_before(call.code, call.begin)[0] in ("new", "goto", "operator", "template", "class", "struct"):
            return None
        function = self.program.function_at(call.source, call.begin)
        scope = function.scope if function and function.member else ""
        whose = self.objects.whose(call, scope) if call.is_member else None
        if whose in ("own", "std") or (whose == "gpu" and SIZES.match(name)):
            return None
        if not call.is_member and (self.is_own(name, chain, scope) or gpu_values.is_declaration(call) or
                                   self.is_host(name, chain)):
            return None
        arguments = [call.code[a:b] for a, b in call.parts]
        no_macro = "::" in call.chain or call.is_member or name in self.declared
        if any(self.values.holds(argument, False, no_macro) for argument in arguments):
            return "work"
        if call.is_member and self.values.holds(call.receiver):
            return "work"
        if any(self.values.holds(argument) for argument in arguments):
            return None if SET_UP.match(name) else "work"
        if call.is_member and whose == "other":
            return None if SET_UP.match(name) else "work"
        return None if call.is_member and HOST_MEMBER.match(name) else "unknown"

    def is_host(self, name, chain):
        """Whether it is a function of C, POSIX and their like, which the program does not declare itself."""
        if "::" in chain and not chain.startswith("thrust::"):
            return False
        return HOST.match(name) is not None and (name not in self.prototypes or RESERVED.match(name) is not None)

    def is_own(self, name, chain, scope):
        """Whether the program defines what a call names that is no member of an object."""
        space = chain.split("::")[-2] if "::" in chain else ""
        if space:
            space = re.sub(r"<.*", "", self.program.types.get(space, space)).split("::")[-1].strip()
            return self.objects.has_body(space, name) or name in self.program.kernels
        return name in self.own or (scope != "" and self.objects.has_body(scope, name))


def prototypes(program, source):
    """The functions that a file declares, but for members, which only calls with an object name."""
    code = source.code
    for found in program.functions[source.path] + program.classes[source.path]:
        code = code[:found.begin] + text.blank(code[found.begin:found.end]) + code[found.end:]
    found = set()
    for part in re.split(r"[;{}]", code):
        while re.search(r"\([^()]*[^() ][^()]*\)", part):
            part = re.sub(r"\([^()]*[^() ][^()]*\)", "()", part)
        if "=" not in part.split("(")[0]:
            found.update(re.findall(r"[\w>*&]\s+[*&]*(\w+)\s*\(", part) + re.findall(r",\s*[*&]*(\w+)\s*\(", part))
    return found


def apply(program, source, report, others):
    """Drain around the calls of a file, and note those of which nothing is known."""
    lambdas, unknown = device_lambdas(source.code), {}
    for call in others.values.calls:
        if call.source is not source or source.inside(report.kept, call.begin) or source.inside(lambdas, call.begin):
            continue
        verdict = others.judge(call)
        edited = [new for begin, end, new in source.edits if begin < call.close + 1 and call.begin < end]
        if verdict == "unknown":
            unknown.setdefault(call.chain, call.begin)
        elif verdict == "work" and not edited:
            drain(source, report, others, call)
        elif verdict == "work" and not edited[0].startswith(("ACS_OUTSIDE(", "(::acs::adopt", "{ ::acs::adopt")):
            report.left(source, call.begin, "library call", call.chain + " may launch work, and stands in or around what is rewritten")
    if unknown and not report.refused(source):
        names = sorted(unknown)
        report.note(source, min(unknown.values()), "these files do not define, and nothing of the GPU is given to, " +
                    ", ".join(names[:20]) + (" and %d more" % (len(names) - 20) if names[20:] else "") +
                    ": taken for functions of the host")


def drain(source, report, others, call):
    """Drain around a call."""
    code, end = call.code, call.close + 1
    why = call.chain + " is not defined in these files, and "
    why += "its object or an argument may be of the GPU, so it may launch work" if call.is_member else "is given something of the GPU, so it may launch work"
    if report.refused(source):
        return report.left(source, call.begin, "library call", report.refused(source))
    in_macro = code is not source.code
    if in_macro and "#" in code[call.begin:end]:
        return report.left(source, call.begin, "library call", why + "; it is in a macro that makes names")
    if not in_macro and call.chain == call.name and call.name not in others.declared and \
            text.is_statement(code, call.begin, end) and not source.crosses_directive(call.begin, end):
        report.around_statement(source, call.begin, text.skip_space(code, end) + 1)
    else:
        report.around(source, call.begin, end)
    report.drained(source, call.begin, "library call", why)
