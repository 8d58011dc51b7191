"""
Waits that Ctrl-C ends. A wait inside the library would keep the interpreter from looking at signals. So the main thread
first polls for a short time, and then lets a helper thread wait in its place.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ._errors import Error
from ._library import failure_of

_POLL_S = 200e-6
_LOOK_S = 0.5


def wait(blocking: Callable[[], int], poll: Callable[[], bool] | None = None) -> Error | None:
    """
    Call `blocking`, which waits, and return what it failed of. `poll`: whether it would not wait. A KeyboardInterrupt leaves
    the call to the helper thread, where it ends later.
    """
    def failure() -> Error | None:
        return failure_of(blocking())  # on the thread that called, since errors are kept for each

    if threading.current_thread() is not threading.main_thread():
        return failure()
    if poll is not None:
        end = time.perf_counter() + _POLL_S
        while time.perf_counter() < end:
            if poll():
                return failure()
    result: list[Error | None] = []
    ended = threading.Event()

    def run() -> None:
        try:
            result.append(failure())
        except Error as error:  # closed meanwhile
            result.append(error)
        ended.set()

    try:
        threading.Thread(target=run, name="acs wait", daemon=True).start()
    except RuntimeError:  # the interpreter ends, and Python 3.12 makes no more threads
        return failure()
    while not ended.wait(_LOOK_S):  # a signal just before the wait does not end it
        pass
    return result[0]
