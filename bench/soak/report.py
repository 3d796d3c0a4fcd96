"""The report of a soak, as one page of Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from bench.soak.run import Found
from bench.soak.verdict import LIMIT, Slope

PICTURE = "soak.svg"
BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->"


def written(found: Found, out: Path) -> None:
    """Write `soak.json`, `soak.md` and the samples (one per line)."""
    (out / "soak.json").write_text(json.dumps(found.as_json(), indent=1, ensure_ascii=False) + "\n")
    (out / "soak.md").write_text(page(found))
    with (out / "samples.ndjson").open("w") as file:
        for kind in ("used", "behind", "said"):
            for each in getattr(found.samples, kind):
                file.write(json.dumps({"kind": kind, **asdict(each)}) + "\n")


def into_page(found: Found, file: Path) -> None:
    """Write the summary between the marks of docs/notes/soak.md."""
    before, _, rest = file.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    file.write_text(f"{before}{BEGIN}{page(found)}\n{END}{after}")


def page(found: Found) -> str:
    """Return the summary."""
    wanted, sent, model = found.wanted, found.sent, found.model
    broken = found.broken()
    rows: list[tuple[str, str]] = [
        ("verdict", "passed" if not broken else "; ".join(broken)),
        ("date, seed", f"{found.at:%Y-%m-%d %H:%M} UTC, {wanted.seed}"),
        ("length", f"{found.seconds / 60:.1f} minutes"),
        ("turns acknowledged", f"{len(sent.turns)}, {len(sent.turns) / found.seconds:.1f} a second"),
        ("sessions, users, tenants", f"{len(sent.sessions)}, {len(sent.users)}, {len(sent.tenants)}"),
        (
            "among the records",
            f"{sent.counted['twice']} turns twice, {sent.counted['without key']} without a key, "
            f"{sent.counted['unreadable']} unreadable, {len(sent.unspeakable)} that no model answers",
        ),
        ("edits over HTTP", _counts(dict(found.edits_by_kind().most_common()))),
        ("hostile records", _counts(dict(found.attacked.counted.most_common()))),
        ("faults", ", ".join(f"{n} {kind}" for kind, n in found.faults_by_kind().most_common())),
        ("partitions", _partitions(found)),
        ("workers started again", str(sum(1 for end in found.ends if end.at < found.seconds))),
        ("lag back at zero", _after(found)),
        ("CPU a turn", ", ".join(f"{name} {ms:.1f} ms" for name, ms in found.cpu_a_turn().items())),
        ("model calls asked", str(model["asked"])),
        ("turns answered again", f"{model['turns_answered_again']} of {model['turns_answered']}"),
        ("consolidation answered again", f"{model['runs_answered_again']} of {model['runs_answered']}"),
        ("what the model did wrong", _counts(model["misbehaved"])),
    ]
    verdicts = [
        (each.invariant, each.title, str(each.checked), "holds" if each.ok else f"{len(each.violations)} violations")
        for each in found.verdicts
    ]
    cpu = found.cpu_by_name()
    memory = [
        (
            slope.name,
            f"{slope.began / 60:.1f}–{slope.ended / 60:.1f}",
            f"{slope.first:.0f} → {slope.last:.0f}",
            f"{slope.most:.0f}",
            "too short" if slope.mb_a_minute is None else f"{slope.mb_a_minute:+.2f}",
            f"{cpu.get(slope.name, 0):.0f}",
        )
        for slope in longest(found.slopes)
    ]
    return "\n\n".join(
        [
            _table(("", ""), rows),
            "The history checker over everything that was written:",
            _table(("invariant", "holds when", "checked", "verdict"), verdicts),
            f"Memory of each worker's process that could be judged longest; the limit is {LIMIT:g} MB a minute:",
            _table(("worker", "minutes", "MB", "most", "MB a minute", "CPU s of all its processes"), memory),
        ]
    )


def _partitions(found: Found) -> str:
    grown = found.grown
    if grown is None:
        return "as they were"
    before, after = grown.partitions
    return f"{before} → {after} at {grown.began / 60:.1f} minutes: {grown.took:.1f} s; called {grown.calls} times" + (
        ", once killed in the middle" if grown.killed else ""
    )


def _after(found: Found) -> str:
    if found.lag_gone_after is None:
        return f"no: {found.lag}"
    return f"{found.lag_gone_after:.1f} s after the last record"


def _counts(counted: object) -> str:
    return ", ".join(f"{n} {what}" for what, n in counted.items()) if isinstance(counted, dict) else ""


def longest(slopes: Iterable[Slope]) -> list[Slope]:
    """Return the longest line of each worker. A judged line is preferred to a line without a slope.

    After a growth, the judged workers are younger than the workers that the growth ended.
    """
    best: dict[str, Slope] = {}
    for slope in sorted(slopes, key=lambda each: (each.mb_a_minute is not None, each.ended - each.began)):
        best[slope.name] = slope
    return [best[name] for name in sorted(best)]


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
