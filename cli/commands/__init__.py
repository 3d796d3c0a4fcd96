"""The commands, one module each."""

from __future__ import annotations

import click

from .dlq import dlq
from .doctor import doctor
from .produce import produce
from .show import show
from .topics import topics
from .trace import trace
from .watch import watch
from .worker import worker

COMMANDS: tuple[click.Command, ...] = (
    worker,
    topics,
    produce,
    watch,
    show,
    trace,
    dlq,
    doctor,
)
