"""A terminal program without a terminal: what it draws."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from lab import DEADLINE_S, Failed


def until(texts, command, cwd, env):
    """Runs a program on a terminal of 160 columns until each text was drawn, then types q; what it drew."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
    program = subprocess.Popen([str(w) for w in command], cwd=cwd, env={**os.environ, "TERM": "xterm-256color", **env},
                               stdin=its, stdout=its, stderr=its, start_new_session=True)
    os.close(its)
    drawn, quitting, end = "", False, time.monotonic() + DEADLINE_S
    try:
        while time.monotonic() < end:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    drawn += os.read(ours, 1 << 16).decode(errors="replace")
                except OSError:
                    break
            shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn)
            if not quitting and all(text in shown for text in texts):
                quitting = True
                os.write(ours, b"q")
        else:
            raise Failed(f"{command}: {texts} was not drawn within {DEADLINE_S} s:\n{shown[-3000:]}")
        if program.wait(10):
            raise Failed(f"{command}: exit status {program.returncode}:\n{shown[-3000:]}")
        return shown
    finally:
        if program.poll() is None:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()
        os.close(ours)
