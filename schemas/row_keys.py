"""Keys of table rows: the key that decides a row's partition, and the keys of the index rows (docs/design/rows.md)."""

from __future__ import annotations

from typing import Final

INDEX: Final = "\x01"
"""First character of every index key. Keys of other rows never have a control character."""
AFTER_INDEX: Final = "\x02"
"""Upper bound of the index keys. The keys of all other rows are greater."""
INDEX_BUILT: Final = INDEX + "built/by/version"
"""Key of the row with the build state of a partition's index. Each partition has its own row with this key."""
INDEX_FENCE: Final = INDEX_BUILT + "/tasks"
"""Key of a second row of a partition, for stages of version 0.3 and earlier. At each assignment, that stage reads
rows with two forms of keys: the key of an owner, and the key of an owner's tasks or of a waiting turn. `INDEX_BUILT`
has the first form, and this key has the second form. The stage does not understand the content of these rows, so it
stops before it writes rows without an index."""


SESSION_EPOCHS: Final = INDEX + "epochs"
"""Key of the row with the epochs of a partition's sessions (session_epochs.py). Each partition has its own row with
this key."""


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
    | a row about a whole partition (`INDEX_BUILT`, `INDEX_FENCE`, `SESSION_EPOCHS`) | None |
    """
    if row_key.startswith(INDEX):
        row_key = row_key[1:].partition(INDEX)[2]
    parts = row_key.split("/")
    return "/".join(parts[:3]) if len(parts) >= 3 else None
