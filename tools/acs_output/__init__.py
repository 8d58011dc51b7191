"""Files that the Python tools write: whole, or not at all."""
import os
import tempfile


def write(path, text):
    """Write a file: all of it, or nothing. What is no file, such as a pipe, is written to and never replaced; a link stays."""
    real = os.path.realpath(path)
    if (os.path.exists(path) and not os.path.isfile(path)) or os.path.islink(real):  # the latter: links in a circle
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return
    handle, scratch = tempfile.mkstemp(dir=os.path.dirname(real), prefix=".acs-", suffix=".part")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(scratch, 0o666 & ~mask)
        os.replace(scratch, real)
    except BaseException:
        os.unlink(scratch)
        raise
