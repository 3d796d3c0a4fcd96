"""Keys of table rows: the key that decides a row's partition, and the keys of the index rows (docs/design/rows.md)."""

from __future__ import annotations

from typing import Final

INDEX: Final = "\x01"
"""First character of every index key. Keys of other rows never have a control character."""
AFTER_INDEX: Final = "\x02"
"""Upper bound of the index keys. The keys of all other rows are greater."""
INDEX_BUILT: Final = INDEX + "built/by/version"
"""Key of the mark for a partition with a complete index. The row belongs to its partition, like the changelog's
marker."""
INDEX_FENCE: Final = INDEX_BUILT + "/tasks"
"""Key of a second mark with the same content, for stages of version 0.3 and earlier. They read it at each assignment,
do not understand it, and stop before they write rows without an index. These stages look at rows with two forms of
keys. The first mark has the form of an owner's key; this mark has the form of the keys of an owner's tasks and of a
waiting turn."""


SESSION_EPOCHS: Final = INDEX + "epochs"
"""Key of the row with the epochs of a partition's sessions (session_epochs.py). The row belongs to its partition,
too."""


def index_prefix(kind: str) -> str:
    """Return the key prefix of the index rows of a kind."""
    return f"{INDEX}{kind}{INDEX}"


def index_key(kind: str, key: str) -> str:
    """Return the key of the index row for the row with `key`: the prefix and the key."""
    return index_prefix(kind) + key


def partition_key(row_key: str) -> str | None:
    """Return the key that decides the partition of a row: an owner key or a session key.

    | row | partition key |
    |---|---|
    | `<owner key>`, `<session key>` | the key itself |
    | `<owner key>/tasks`, `/recalled`, `/<session key>`; `<session key>/<n>` | its first three parts |
    | an index row: prefix and key | the partition key of the key after the prefix |
    | a mark of a partition | None |
    """
    if row_key.startswith(INDEX):
        row_key = row_key[1:].partition(INDEX)[2]
    parts = row_key.split("/")
    return "/".join(parts[:3]) if len(parts) >= 3 else None
