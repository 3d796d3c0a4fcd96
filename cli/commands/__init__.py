"""The commands, one module each."""

from __future__ import annotations

import click

from .dlq import dlq
from .produce import produce
from .show import show
from .topics import topics
from .watch import watch

COMMANDS: tuple[click.Command, ...] = (topics, produce, watch, show, dlq)
