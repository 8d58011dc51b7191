"""Where PTX comes from: .ptx files, CUDA sources by nvcc, programs and libraries by cuobjdump."""

import os
import shutil
import subprocess
import tempfile


_SOURCES = (".cu", ".cc", ".cpp", ".cxx", ".c")


class InputError(Exception):
    """A file that cannot be read, or a tool that is missing or failed."""


def _tool(name):
    """A tool of the CUDA toolkit: in PATH, CUDA_HOME or /usr/local/cuda."""
    for folder in (os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        at = shutil.which(name) or (folder and shutil.which(os.path.join(folder, "bin", name)))
        if at:
            return at
    raise InputError(f"{name} was not found: it is part of the CUDA toolkit; put it into PATH, or set CUDA_HOME")


def _run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                          errors="replace", check=False)
    if done.returncode:
        raise InputError(f"{os.path.basename(command[0])} failed: {done.stderr.strip()[-2000:]}")
    return done.stdout


def _compiled(source, flags, nvcc):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "kernels.ptx")
        _run([nvcc or _tool("nvcc"), *flags, "-lineinfo", "-x", "cu", "--ptx", "-o", out, source])
        with open(out, encoding="utf-8", errors="replace") as file:
            return [file.read()]


def _dumped(program):
    text = _run([_tool("cuobjdump"), "-ptx", program])
    parts = [p[p.index(".version"):] for p in text.split("Fatbin ptx code:")[1:] if ".version" in p]
    if not parts:
        raise InputError(f"{program} has no PTX: build it with PTX for one architecture "
                         "(-gencode arch=compute_90,code=compute_90), or give the sources")
    return parts


def texts(path, flags, nvcc):
    """The PTX texts of a file. `flags`, `nvcc`: for sources."""
    if not os.path.exists(path):
        raise InputError(f"{path}: there is no such file")
    if path.endswith(_SOURCES):
        return _compiled(path, flags, nvcc)
    if path.endswith(".ptx"):
        with open(path, encoding="utf-8", errors="replace") as file:
            return [file.read()]
    return _dumped(path)


