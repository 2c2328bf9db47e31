"""A subject: one process that holds one strategy of one case, ready to be called.

It gets a `Spec` and does the one thing that its role names. It runs the very script that is shown to users: the script
is executed as a module, which leaves ``elems`` and ``strategy`` behind. What it can be told and what it says is in
`measure.subject.messages`. The host forks it, or it starts in a fresh interpreter.
"""

import os
import sys
import tempfile

from measure.subject import memory
from measure.subject.errors import describe
from measure.subject.lifeline import SUBJECT_OOM_SCORE, die_with_parent, offer_memory
from measure.subject.messages import Channel, Spec
from measure.subject.roles import ROLES, Sender


def serve(spec: Spec, channel: Channel) -> None:
    """Do what the spec says; errors of the strategy become a message. Returns when done or when told to stop."""
    sender = Sender(channel)
    if spec.case_dir:
        # What a killed subject leaves behind is removed with the case.
        tempfile.tempdir = spec.case_dir
    try:
        if spec.device.startswith("GPU"):
            memory.prepare_gpu()
        ROLES[spec.role](spec, sender, channel)
    except BaseException as error:  # SystemExit and KeyboardInterrupt of a strategy are outcomes too
        sender.send(describe(error))


def main() -> None:
    """A subject in a fresh interpreter, whose channel is stdin."""
    # Who started this process: by now its parent may have ended, and another one have taken its place.
    die_with_parent(int(sys.argv[1]) if len(sys.argv) > 1 else os.getppid())
    offer_memory(SUBJECT_OOM_SCORE)
    channel = Channel(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if (spec := channel.receive(Spec)) is not None:
        serve(spec, channel)
    sys.stdout.flush()
    os._exit(0)
