"""The command `python -m bench.soak` (docs/notes/soak.md)."""

from __future__ import annotations

import asyncio
import logging
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import click
import structlog

from bench.soak import plot, report
from bench.soak.run import Found, Wanted, soak

BENCH = Path(__file__).resolve().parent.parent
OUT = BENCH / "out" / "soak"
DOCS = BENCH.parent / "docs" / "notes"
INTERRUPTED = 130


@click.command()
@click.option("--minutes", default=20.0, show_default=True, help="Minutes of load.")
@click.option("--sessions", default=2_000, show_default=True)
@click.option("--rate", default=15.0, show_default=True, help="Turns per second.")
@click.option("--seed", default=1, show_default=True, help="Seed of the faults, the traffic and the model's errors.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=OUT, show_default=True)
@click.option("--embedded", is_flag=True, help="All stages in one process on a folder, which is killed and stopped.")
@click.option("--grow-to", type=int, help="Partitions after the middle of the load. Before it there are 4.")
@click.option("--docs", is_flag=True, help="Also write table and plot into docs/notes.")
@click.option("--keep", is_flag=True, help="Keep logs and data, and print their folder.")
def main(
    minutes: float,
    sessions: int,
    rate: float,
    seed: int,
    out: Path,
    embedded: bool,
    grow_to: int | None,
    docs: bool,
    keep: bool,
) -> None:
    """Run the pipeline for a long time under faults. Exit with 1 if an invariant or a limit did not hold."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # the broker goes away by plan
    wanted = Wanted(minutes=minutes, sessions=sessions, rate=rate, seed=seed, embedded=embedded, grow_to=grow_to)
    folder = Path(tempfile.mkdtemp(prefix="memstream-soak-"))
    try:
        found = asyncio.run(_until_interrupted(wanted, folder))
    except asyncio.CancelledError:
        raise SystemExit(INTERRUPTED) from None
    finally:
        if keep:
            click.echo(f"logs and data: {folder}", err=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    report.written(found, out)
    plot.drawn(found, out / report.PICTURE)
    if docs:
        report.into_page(found, DOCS / "soak.md")
        plot.drawn(found, DOCS / report.PICTURE)
    click.echo(report.page(found))
    if found.broken():
        raise SystemExit(1)


async def _until_interrupted(wanted: Wanted, folder: Path) -> Found:
    """Run until the end, Ctrl-C or SIGTERM, then end all processes."""
    soaking = asyncio.ensure_future(soak(wanted, folder))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, soaking.cancel)
    return await soaking


if __name__ == "__main__":
    main()
