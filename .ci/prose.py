"""Check docstrings, comments and pages for patterns that readers stumble over.

    python .ci/prose.py            compare with the allowed counts; exit 1 if a file has more, or fewer
    python .ci/prose.py --write    write the present counts; no count may grow
    python .ci/prose.py PATH …     print each finding in these files

`.ci/prose-allowed.json` has the number of findings that remain, by file and pattern. A file without an entry has none.
"""

from __future__ import annotations

import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = ROOT / ".ci" / "prose-allowed.json"
SOURCES = ("*.py", "*.md")
LEFT_OUT = ("docs/adr/", "docs/notes/", "CHANGELOG.md", "tests/", "bench/", ".ci/prose.py")
"""Records of one day, and code that users do not read."""

FIRST_WORD = re.compile(r"(What|Who|Whose|Whom|Of|So|That|Whether|Which|Those|Such)\b")
"""First words of a docstring that hide what the thing is or does. A verb or a noun shows it."""

PATTERNS = {
    "tell": re.compile(r"\b(tells?|told)\b", re.IGNORECASE),  # reports, shows, says
    "stand": re.compile(r"\b(stands?|stood)\b(?! (for|by)\b)", re.IGNORECASE),  # is in, has, exists
    "lie": re.compile(r"\b(lies?|lay)\b (in|on|at|beside|behind|before|under|with|there)\b", re.IGNORECASE),  # is in
    "anew": re.compile(r"\banew\b", re.IGNORECASE),  # again, from scratch
    "beside": re.compile(r"\bbeside\b", re.IGNORECASE),  # besides, next to, and
    "at once": re.compile(r"\bat once\b", re.IGNORECASE),  # immediately, in one step, together
    "ellipsis": re.compile(
        r"\b(of those (that|of|who|which)|the ones? (that|of|with|which)|such as (have|are|has|is)|those of|that of)\b",
        re.IGNORECASE,
    ),  # name the thing
    # name the thing
    "what": re.compile(r"\b(of|with|by|from|for|in|to|as|than|beside|behind|whatever) what\b", re.IGNORECASE),
    "so many": re.compile(r"\bso (many|much|long)\b(?! as)", re.IGNORECASE),  # give the number's name
    "whose turn": re.compile(r"\b(whose turn|of whom|by whom|to whom)\b", re.IGNORECASE),
}
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"``[^`]*``|`[^`]*`")
_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”")


def files() -> list[Path]:
    """Return the sources and pages that git knows."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *SOURCES],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    wanted = sorted(name for name in set(names) if name and not name.startswith(LEFT_OUT))
    return [ROOT / name for name in wanted if (ROOT / name).exists()]


def texts(path: Path) -> Iterator[tuple[int, str, bool]]:
    """Yield prose with its line, and whether it is a docstring."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from ((n, line, False) for n, line in enumerate(_blank(_FENCE, source).splitlines(), 1))
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            for n, line in enumerate(node.value.value.splitlines()):
                yield node.lineno + n, line, n == 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string, False


def _blank(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda found: "\n" * found.group().count("\n"), text)


def findings(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield line, pattern and text of each finding. Code and quotations are not searched."""
    for line, text, begins in texts(path):
        prose = _QUOTED.sub("", _CODE.sub("", text))
        if begins and FIRST_WORD.match(text):
            yield line, "first word", text.strip()
        for name, pattern in PATTERNS.items():
            for _ in pattern.finditer(prose):
                yield line, name, text.strip()


def main(arguments: list[str]) -> int:
    """Return the exit code."""
    if arguments and arguments[0] != "--write":
        for path in map(Path, arguments):
            for line, name, text in findings(path):
                print(f"{path}:{line}: {name}: {text}")
        return 0
    counts = {
        path.relative_to(ROOT).as_posix(): dict(sorted(found.items()))
        for path in files()
        if (found := Counter(name for _, name, _ in findings(path)))
    }
    allowed = json.loads(ALLOWED.read_text())
    worse = _more(counts, allowed)
    for path, name in worse:
        for line, which, text in findings(ROOT / path):
            if which == name:
                print(f"{path}:{line}: {name}: {text}")
    if worse:
        print("Use other words: CONTRIBUTING.md, section Words. The allowed counts only go down.")
        return 1
    if arguments == ["--write"]:
        ALLOWED.write_text(json.dumps(counts, indent=1) + "\n")
    elif counts != allowed:
        better = ", ".join(sorted(path for path in {*counts, *allowed} if counts.get(path) != allowed.get(path)))
        print(f"Fewer findings than .ci/prose-allowed.json has ({better}). Write the counts: prose.py --write")
        return 1
    print(f"{sum(sum(each.values()) for each in counts.values())} findings in {len(counts)} files are left")
    return 0


def _more(counts: dict[str, dict[str, int]], allowed: dict[str, dict[str, int]]) -> list[tuple[str, str]]:
    return [
        (path, name)
        for path, found in counts.items()
        for name, count in found.items()
        if count > allowed.get(path, {}).get(name, 0)
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
