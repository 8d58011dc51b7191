"""The rules for calls of the CUDA runtime and of libraries: copies, fills, waits, timers, memory, work that stays."""
import re

import acs_adopt.text as text

CALL = re.compile(r"(?<![\w.])(?:::\s*)?\b((?:cuda|cu|cublas|cufft|cusparse|cusolver|curand|npp|cudnn|nvjpeg)[A-Z]\w*|npp\w+|"
                  r"\w+\s*::\s*(?:\w+\s*::\s*)*\w+|ncclGroupEnd)\s*(<[^;(){}]*>)?\s*\(")
COPIES = {"cudaMemcpy": (4, 4), "cudaMemcpyAsync": (4, 5), "cudaMemset": (3, 3), "cudaMemsetAsync": (3, 4)}
WAITS = ("cudaDeviceSynchronize", "cudaThreadSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize")
# Device work, or changes of what queued kernels use, which ACS does not see.
OUTSIDE_CUDA = re.compile(
    r"(?:cudaMemcpy(?:2D|3D|To|From|Array|Peer|Batch)\w*|cudaMemset(?:2D|3D)\w*|cudaMallocAsync|cudaMallocFromPoolAsync\w*|"
    r"cudaLaunch(?:Kernel\w*|Cooperative\w*|HostFunc\w*)|cudaStreamAddCallback|cudaGraphLaunch|cudaDestroyTextureObject|"
    r"cudaDestroySurfaceObject|cudaFreeMipmappedArray|cudaGraphics(?:Map|Unmap)Resources|cudaSignalExternalSemaphores\w*|"
    r"cu(?:LaunchKernel\w*|LaunchCooperative\w*|LaunchHostFunc|GraphLaunch|Memcpy\w+|Memset\w+|MemFree|ModuleUnload|"
    r"TexRefSet\w+|CtxSynchronize|StreamSynchronize))$")
OUTSIDE_LIBRARY = re.compile(
    r"(?:cublas(?!.*(?:Create|Destroy|Handle|Stream|Mode|Version|Workspace|Property|Logger))\w+|cufftExec\w+|cufftXtExec\w*|"
    r"cufftXtMemcpy|cusparse(?!Create|Destroy|Set|Get|\w*_bufferSize|Dn|Sp(?:Mat|Vec))\w+|"
    r"cusolver(?!.*(?:Create|Destroy|bufferSize|BufferSize|Stream|Handle))\w+|curandGenerate\w*|ncclGroupEnd|"
    r"nppi?s?(?!.*(?:Stream|Malloc|Free|GetBufferSize|Version|Get))\w+|"
    r"cudnn(?:.*(?:Forward|Backward|Transform|OpTensor|AddTensor|SetTensor$|ScaleTensor|ReduceTensor$))\w*|nvjpegDecode\w*)$")
ALGORITHM = re.compile(
    r"thrust::(?:(?:stable_)?sort(?:_by_key)?|reduce(?:_by_key)?|transform(?:_reduce|_if|_(?:in|ex)clusive_scan)?|"
    r"(?:in|ex)clusive_scan(?:_by_key)?|copy(?:_if|_n)?|uninitialized_\w+|fill(?:_n)?|sequence|generate(?:_n)?|for_each(?:_n)?|"
    r"unique(?:_by_key|_copy|_by_key_copy|_count)?|gather(?:_if)?|scatter(?:_if)?|count(?:_if)?|(?:min|max|minmax)_element|"
    r"find(?:_if|_if_not)?|remove(?:_copy)?(?:_if)?|(?:stable_)?partition(?:_copy)?|inner_product|merge(?:_by_key)?|"
    r"set_\w+|lower_bound|upper_bound|binary_search|equal|adjacent_difference|tabulate|replace\w*|swap_ranges|reverse\w*|"
    r"all_of|any_of|none_of|is_sorted|mismatch)$|cub::Device\w+::\w+$")
DECLARATION = re.compile(r"\s*(?!return\b|else\b)[\w:]+(?:\s*<[^;{}]*>)?[\s*&]+\w+\s*\([^=]*$")
DECLARES = re.compile(r"[A-Za-z_]\w*$")
NOT_DECLARES = ("return", "else", "do", "case", "goto", "throw", "co_return", "and", "or", "not")


class Site:
    """One call in a file."""

    def __init__(self, source, code, match, in_macro, name):
        self.source, self.code, self.macro = source, code, in_macro
        self.name = name
        self.begin = match.start()
        self.open = match.end() - 1
        self.close = text.closing(code, self.open)
        self.template = match.group(2)
        self.parts = text.split(code, self.open + 1, self.close) if self.close > 0 else None

    def argument(self, i):
        """Argument i as text."""
        return self.source.part(*self.parts[i])

    def wrapped(self, i):
        """Argument i as text for a macro: in brackets where it has a comma outside brackets."""
        begin, end = self.parts[i]
        argument, depth = self.argument(i), 0
        for char in self.code[begin:end]:
            depth += (char in "([{") - (char in ")]}")
            if char == "," and depth == 0:
                return "(" + argument + ")"
        return argument

    def replace(self, new):
        """Put another text in its place."""
        self.source.edit(self.begin, self.close + 1, new)

    def statement(self):
        """Whether nothing uses the result."""
        return not self.macro and text.is_statement(self.code, self.begin, self.close + 1)


def name_of(program, others, code, match):
    """The function that a call names; None: a macro, or something that takes the result of another call, as checks do."""
    name = others.resolve(match.group(1))
    if program.is_macro(name) or ("::" in name and not name.startswith(("thrust::", "cub::"))):
        return None
    inner = re.compile(r"\s*([\w:]+)\s*(?:<[^;(){}]*>\s*)?\(").match(code, match.end())
    end = text.closing(code, inner.end() - 1) if inner and "::" not in name and not name.startswith("cuda") else -1
    checks = end > 0 and code[text.skip_space(code, end + 1):][:1] in (")", ",") and \
        (CALL.match(code, inner.start(1)) or code[text.skip_space(code, end + 1)] == ")")
    return None if checks else name


def declares_outside(program, source, match):
    """Whether a name is declared outside of all functions, such as the second one of a list."""
    first = max(source.code.rfind(char, 0, match.start()) for char in ";{}") + 1
    return DECLARATION.match(source.code, first, match.start()) is not None and not program.function_at(source, match.start())


def sites(program, source, report, others):
    """The calls of a file, in host code and in bodies of macros."""
    for match in CALL.finditer(source.code):
        before, at = text.word_before(source.code, match.start())
        previous = text.back(source.code, match.start())
        if before and before not in NOT_DECLARES and not before.isdigit():
            continue  # a declaration
        if previous >= 1 and source.code[previous - 1:previous + 1] in ("->", "::"):
            continue
        if previous >= 0 and source.code[previous] in "*&" and re.search(
                r"\b(?:extern|cudaError_t|CUresult|void|int)\s*[*&]\s*$", source.code[:match.start()]):
            continue
        name = None if declares_outside(program, source, match) else name_of(program, others, source.code, match)
        if name and not program.on_device(source, match.start()) and not source.inside(report.kept, match.start()):
            yield Site(source, source.code, match, False, name)
    for first, last in source.directives:
        define = re.match(r"\s*#\s*define\b\s*\w+(\([^)]*\))?", source.plain[first:last])
        if not define:
            continue
        for match in CALL.finditer(source.joined, first + define.end(), last):
            name = name_of(program, others, source.joined, match)
            if name and not source.inside(report.kept, match.start()):
                site = Site(source, source.joined, match, True, name)
                site.close = site.close if site.close < last else -1
                yield site


def copy(program, site, report):
    """cudaMemcpy and its like."""
    least, most = COPIES[site.name]
    source, kind = site.source, "copy"
    if site.parts is None or not least <= len(site.parts) <= most:
        report.around(source, site.begin, site.close + 1)
        return report.drained(source, site.begin, kind, "its arguments are not understood")
    asynchronous = site.name.endswith("Async")
    operands = ", ".join(site.wrapped(i) for i in range(3))
    on_device = len(site.parts) > 3 and site.argument(3) == "cudaMemcpyDeviceToDevice"
    if site.name.startswith("cudaMemset"):
        new = "acs_cuda_memset" + ("_all(" if program.seen_by_host and not asynchronous else "(") + operands + ")"
    elif program.prints == "printf" and not asynchronous and not on_device:
        return outside(site, report, kind, "kernels call printf, and a blocking copy writes what they say")
    else:
        which = "_async(" if asynchronous else "_all(" if program.seen_by_host and not on_device else "("
        new = "acs_cuda_memcpy" + which + operands + ", " + site.wrapped(3) + ")"
    site.replace(new)
    report.rewritten(source, site.begin, kind)


def wait(program, site, report):
    """cudaDeviceSynchronize and its like."""
    source = site.source
    stays = program.sync_stays()
    argument = source.code[site.open + 1:site.close]
    if not stays and re.search(r"\+\+|--|[^=!<>]=[^=]", argument):
        stays = "its argument changes something"
    if stays:
        return report.stays(source, site.begin, "wait", stays)
    site.replace("acs_cuda_sync()")
    report.rewritten(source, site.begin, "wait")


def memory(program, site, report):
    """cudaMalloc and cudaFree, with --memory."""
    names = {"cudaMalloc": ("acs_cuda_malloc", 2), "cudaMallocAsync": ("acs_cuda_malloc", 2), "cudaFree": ("acs_cuda_free", 1),
             "cudaFreeAsync": ("acs_cuda_free_async", 2)}
    name, count = names[site.name]
    if site.parts is None or len(site.parts) not in (count, 3 if site.name == "cudaMallocAsync" else count):
        return False
    site.replace(name + "(" + ", ".join(site.argument(i) for i in range(count)) + ")")
    report.rewritten(site.source, site.begin, "allocation")
    return True


def outside(site, report, kind, why):
    """Work that stays, with ACS drained before and the device after."""
    if "#" in site.code[site.begin:site.close + 1]:
        return report.left(site.source, site.begin, kind, why + "; it is in a macro that makes names")
    report.around(site.source, site.begin, site.close + 1)
    report.drained(site.source, site.begin, kind, why)


def apply_one(program, site, report, with_memory):
    """Apply the rule for one call."""
    source, name = site.source, site.name
    known = name in COPIES or name in WAITS or name in ("cudaEventRecord", "cudaDeviceReset", "cudaThreadExit")
    allocates = with_memory and name in ("cudaMalloc", "cudaMallocAsync", "cudaFree", "cudaFreeAsync")
    plain = OUTSIDE_CUDA.match(name)
    library = OUTSIDE_LIBRARY.match(name) or (ALGORITHM.match(name))
    if not (known or allocates or plain or library):
        return
    kind = "wait" if name in WAITS else "copy" if name.startswith(("cudaMemcpy", "cudaMemset")) else "call"
    refused = report.refused(source)
    if refused:
        if kind == "copy" or plain or library:
            report.left(source, site.begin, kind, refused)
        return
    if site.close < 0:
        return report.left(source, site.begin, kind, "its end is not found")
    if not site.macro and source.crosses_directive(site.begin, site.close):
        if name != "cudaEventRecord" and not allocates:
            report.around(source, site.begin, site.close + 1)
            report.drained(source, site.begin, kind, "a preprocessor line is in the middle of it")
        return
    if name in COPIES:
        copy(program, site, report)
    elif name in WAITS:
        wait(program, site, report)
    elif name == "cudaEventRecord":
        words = set(re.findall(r"[A-Za-z_]\w*", source.plain[site.parts[0][0]:site.parts[0][1]])) if site.parts else set()
        if words & program.timed:
            site.replace("acs_cuda_event_record(" + source.text[site.open + 1:site.close] + ")")
            report.rewritten(source, site.begin, "timer")
    elif name in ("cudaDeviceReset", "cudaThreadExit"):
        site.replace("acs_cuda_reset()")
        report.rewritten(source, site.begin, "reset")
    elif allocates and memory(program, site, report):
        return
    elif library:
        outside(site, report, "library call", "ACS does not see what " + name + " launches; acs_call takes it as an op")
    elif plain:
        outside(site, report, kind, "ACS has no op for " + name)


def apply(program, source, report, others, with_memory):
    """Rewrite the calls of a file."""
    for site in sites(program, source, report, others):
        if not any(begin <= site.begin < end for begin, end, _ in source.edits):
            apply_one(program, site, report, with_memory)
