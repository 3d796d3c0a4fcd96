"""Keys of table rows: which key decides a row's partition, and the rows of the index (docs/design/rows.md)."""

from __future__ import annotations

from typing import Final

INDEX: Final = "\x01"
"""The first character of every key of the index. The key of another row never has a control character."""
AFTER_INDEX: Final = "\x02"
"""The keys of all other rows are greater."""
INDEX_BUILT: Final = INDEX + "built/by/version"
"""The mark of a partition whose index is complete. It belongs to its partition, like the changelog's marker."""
INDEX_FENCE: Final = INDEX_BUILT + "/tasks"
"""The same mark once more, under a key that stages of version 0.3 and earlier read at each assignment. They do not
understand it, and stop before they write rows without their index. They look at rows of two forms: the first mark has
the form of an owner, this one that of an owner's tasks and of a waiting turn."""


SESSION_EPOCHS: Final = INDEX + "epochs"
"""The epochs of a partition's sessions (session_epochs.py). It belongs to its partition, too."""


def index_prefix(kind: str) -> str:
    """Return the prefix of the index rows of a kind."""
    return f"{INDEX}{kind}{INDEX}"


def index_key(kind: str, key: str) -> str:
    """Return the key of the index row for the row of `key`: the prefix and the key."""
    return index_prefix(kind) + key


def partition_key(row_key: str) -> str | None:
    """Return the key that decides the partition of a row: an owner key or a session key.

    | row | its partition is that of |
    |---|---|
    | `<owner key>`, `<session key>` | itself |
    | `<owner key>/tasks`, `/recalled`, `/<session key>`; `<session key>/<n>` | its first three parts |
    | an index row: prefix and key | the key behind the prefix |
    | a mark of a partition | none: it returns None |
    """
    if row_key.startswith(INDEX):
        row_key = row_key[1:].partition(INDEX)[2]
    parts = row_key.split("/")
    return "/".join(parts[:3]) if len(parts) >= 3 else None
