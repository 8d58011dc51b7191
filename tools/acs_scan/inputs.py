"""
Where PTX comes from: .ptx files, CUDA sources by nvcc, programs and libraries by cuobjdump. Of sources and programs it is the
PTX of the architectures that the program is built for, since the code of a kernel may depend on them (__CUDA_ARCH__).
"""

import os
import re
import shlex
import shutil
import subprocess
import tempfile

_SOURCES = (".cu", ".cc", ".cpp", ".cxx", ".c")
_WORDS = ("native", "all", "all-major")
_NAME = re.compile(r"(?:sm_|compute_|lto_)?(\d+[af]?)(?:-real|-virtual)?$")
_ARCHITECTURE = ("-arch", "--gpu-architecture", "-gencode", "--generate-code")
_DROPPED = ("-c", "--compile", "--ptx", "-ptx", "-MD", "-MMD", "-MP")  # what nvcc has to make is known
_DROPPED_WITH_VALUE = ("-code", "--gpu-code", "-o", "--output-file", "-MF", "-MT", "-MQ")


class InputError(Exception):
    """A file that cannot be read, or a tool that is missing or failed."""


def _tool(name):
    """A tool of the CUDA toolkit: in PATH, CUDA_HOME or /usr/local/cuda."""
    for folder in (os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        at = shutil.which(name) or (folder and shutil.which(os.path.join(folder, "bin", name)))
        if at:
            return at
    raise InputError(f"{name} was not found: it is part of the CUDA toolkit; put it into PATH, or set CUDA_HOME")


def _run(command, environment=None):
    """What the command writes to its outputs."""
    name = os.path.basename(command[0]) or command[0]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                              errors="replace", check=False, env=environment)
    except OSError as error:
        raise InputError(f"{name} cannot be started: {error.strerror}") from None
    if done.returncode:
        raise InputError(f"{name} failed: {done.stderr.strip()[-2000:] or done.returncode}")
    return done.stdout, done.stderr


def _read(path, option=None):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError as error:
        raise InputError(f"{option}: {error.strerror}" if option else error.strerror) from None


# --------------------------------------------------------------------------------------------------- options of nvcc

def _expanded(words):
    """@FILE: an option on each line, as CMake has them. --options-file FILE of nvcc: its words."""
    found, words = [], list(words)
    while words:
        word = words.pop(0)
        name, _, value = word.partition("=")
        if word.startswith("@"):
            for line in _read(word[1:], word).splitlines():
                one = [] if line in ("", "-I", "-D") else [line]  # those of empty items of a list
                found += shlex.split(line[6:]) if line.startswith("SHELL:") else one
        elif name in ("-optf", "--options-file"):
            for path in (value or (words.pop(0) if words else "")).split(","):
                found += _expanded(shlex.split(_read(path, f"{name} {path}")))
        else:
            found.append(word)
    return found


class Compiler:
    """nvcc with the options that the program is built with. `stub`: (file that sources include, macro): see compile()."""

    def __init__(self, nvcc, flags, architectures, stub=None, depends=None):
        self._nvcc, self._stub, self.depends = nvcc, stub, depends
        self._environment = {k: v for k, v in os.environ.items() if k not in ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")}
        words = [*shlex.split(os.environ.get("NVCC_PREPEND_FLAGS", "")), *flags,
                 *shlex.split(os.environ.get("NVCC_APPEND_FLAGS", ""))]
        self._flags, self._architectures = [], []
        for name in re.split(r"[,;]", ",".join(architectures)):
            if name:
                self._add(name)
        self._take(_expanded(words))

    def _take(self, words):
        """Options and architectures."""
        while words:
            word = words.pop(0)
            name, equals, value = word.partition("=")
            if name in _ARCHITECTURE or name in _DROPPED_WITH_VALUE:
                value = value if equals else words.pop(0) if words else ""
                if name in _ARCHITECTURE:
                    virtual = re.match(r"arch=([^,]+)", value.strip("\"'"))
                    self._add(virtual.group(1) if virtual else value)
            elif word in ("-dc", "--device-c", "-dw", "--device-w"):
                self._flags.append("-rdc=true")
            elif word not in _DROPPED:
                self._flags.append(word)

    def _add(self, name):
        match = _NAME.match(name.strip("\"' "))
        if not match and name not in _WORDS:
            raise InputError(f"'{name}' is no architecture: name it as nvcc (sm_90) or CMake (90) does")
        one = match.group(1) if match else name
        if one not in self._architectures:
            self._architectures.append(one)

    def architectures(self):
        """Numbers such as "90" or "90a". Empty: none was given."""
        found = []
        for one in self._architectures:
            found += self._asked(one) if one in _WORDS else [one]
        return list(dict.fromkeys(found))

    def _command(self):
        return [self._nvcc or _tool("nvcc")]

    def _asked(self, word):
        said = "".join(_run(self._command() + ["-arch=" + word, "--dryrun", "-x", "cu", "-c", os.devnull, "-o", os.devnull]))
        if "Cannot find valid GPU" in said:
            raise InputError("-arch=native: there is no GPU here; name the architectures that the program is built for")
        match = re.search(r"__CUDA_ARCH_LIST__=([\d,]+)", said)
        if not match:
            raise InputError(f"nvcc does not tell what -arch={word} is: name the architectures")
        return [str(int(number) // 10) for number in match.group(1).split(",")]

    def compile(self, source):
        """
        The PTX for each architecture. The header that is being made may be included by the source: then it counts as empty,
        as there may be none yet, or one that was made of other code.
        """
        architectures = self.architectures()
        if not architectures:
            raise InputError("which GPUs is the program built for? Kernels may differ: give --arch, such as --arch sm_90, or "
                             "nvcc's own options behind -- (-arch=sm_90, -gencode ...)")
        texts = []
        with tempfile.TemporaryDirectory() as folder:
            out, dependencies = os.path.join(folder, "kernels.ptx"), os.path.join(folder, "kernels.d")
            extra = []
            if self._stub:
                os.mkdir(os.path.join(folder, "include"))
                with open(os.path.join(folder, "include", self._stub[0]), "w", encoding="utf-8"):
                    pass
                extra = ["-D" + self._stub[1], "-I", os.path.join(folder, "include")]
            if self.depends is not None:
                extra += ["-MD", "-MF", dependencies]
            for one in architectures:
                _run(self._command() + [*self._flags, *extra, "-arch=compute_" + one, "-lineinfo", "-x", "cu", "--ptx", "-o", out,
                                        source], self._environment)
                texts.append(_read(out))
                if self.depends is not None:
                    self._note(_read(dependencies), folder)
        return texts

    def _note(self, text, folder):
        """The files that the source includes."""
        for path in re.findall(r"(?:\\.|[^\s\\])+", text.partition(" :")[2].replace("\\\n", " ")):
            if not path.startswith(folder) and os.path.basename(path) != (self._stub or ("",))[0]:
                self.depends[path] = None


# ------------------------------------------------------------------------------------------------------------ programs

def _number(name):
    return int(re.match(r"\d+", name).group(0))


def _runs(gpu, machine, ptx):
    """The architecture whose code a GPU runs; None: none. Machine code comes first, then PTX that the driver compiles."""
    fit = [m for m in machine if _number(m) // 10 == _number(gpu) // 10 and _number(m) <= _number(gpu)
           and (m.isdigit() or m == gpu)]
    if fit:
        return max(fit, key=lambda m: (_number(m), m))
    fit = [p for p in ptx if _number(p) <= _number(gpu) and (p.isdigit() or p == gpu)]
    return max(fit, key=lambda p: (_number(p), p)) if fit else None


def _dumped(program, gpus):
    text = _run([_tool("cuobjdump"), "-ptx", program])[0]
    parts, machine = {}, []
    for kind, arch, part in re.findall(r"^Fatbin (ptx|elf) code:\n=+\narch = sm_(\w+)\n(.*?)(?=^Fatbin |\Z)", text, re.S | re.M):
        if kind == "elf":
            machine.append(arch)
        elif ".version" in part:
            parts.setdefault(arch, []).append(part[part.index(".version"):])
    if not parts:
        raise InputError("it has no PTX: build it with PTX for each architecture (-gencode arch=compute_90,"
                         "code=[sm_90,compute_90]), or give the sources")
    wanted = {_runs(gpu, machine, parts): gpu for gpu in gpus} if gpus else dict.fromkeys([*machine, *parts])
    for arch, gpu in wanted.items():
        if arch is None:
            raise InputError(f"it has no code for sm_{gpu}")
        if arch not in parts:
            raise InputError(f"it has machine code for sm_{arch} and not its PTX (PTX is for {', '.join('sm_' + p for p in parts)}), "
                             "and kernels may differ: build it with both, give the sources, or name the GPUs that it runs on "
                             "(--arch)")
    return [part for arch in wanted for part in parts[arch]]


def texts(path, compiler):
    """The PTX texts of a file."""
    if not os.path.exists(path):
        raise InputError("there is no such file")
    if path.endswith(_SOURCES):
        return compiler.compile(path)
    if compiler.depends is not None:
        compiler.depends[path] = None
    return [_read(path)] if path.endswith(".ptx") else _dumped(path, compiler.architectures())
