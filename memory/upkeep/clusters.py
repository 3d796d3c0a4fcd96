"""Clusters of similar episodes, from which insights are drawn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from ...schemas import ids
from ...schemas.episodes import StoredEpisode

SHOWN_MAX = 20
"""Maximum episodes of a cluster. Of a larger cluster, only the newest episodes are kept."""
Embedded = tuple[StoredEpisode, Sequence[float]]


def find_clusters(
    episodes: Sequence[Embedded], *, similarity: float, at_least: int
) -> tuple[tuple[StoredEpisode, ...], ...]:
    """Return groups of episodes. The episodes of a group have the same subject, and each is near another episode of the
    group by cosine similarity. The largest group comes first; in a group, the oldest episode comes first.

    `at_least`: minimum number of turns in a group. Turns count, not episodes: five statements of one turn are one
    story, not a pattern.
    """
    by_subject: dict[str, list[Embedded]] = {}
    for each in episodes:
        by_subject.setdefault(each[0].subject, []).append(each)
    groups = (group for same in by_subject.values() if len(same) >= at_least for group in _linked(same, similarity))
    wide = [group for group in groups if len({(each.session_id, each.turn_id) for each in group}) >= at_least]
    return tuple(sorted(wide, key=lambda group: (-len(group), group[0].episode_id)))


def cluster_name(cluster: Sequence[StoredEpisode]) -> str:
    """Return 16 hexadecimal digits that depend on the set of episodes, not on their order."""
    return ids.short_hash("/".join(sorted(each.episode_id for each in cluster)))


def _linked(episodes: Sequence[Embedded], similarity: float) -> list[tuple[StoredEpisode, ...]]:
    """Return the connected components of the graph whose edges are the near pairs."""
    matrix = numpy.asarray([dense for _, dense in episodes], dtype=numpy.float32)
    norms = numpy.linalg.norm(matrix, axis=1, keepdims=True)
    unit = matrix / numpy.where(norms == 0, 1, norms)
    near = (unit @ unit.T) >= similarity
    left = set(range(len(episodes)))
    groups = []
    while left:
        group, edge = set[int](), {min(left)}
        while edge:
            group |= edge
            left -= edge
            edge = {int(other) for each in edge for other in numpy.flatnonzero(near[each])} & left
        found = sorted((episodes[each][0] for each in group), key=lambda each: (each.occurred_at, each.episode_id))
        groups.append(tuple(found[-SHOWN_MAX:]))
    return groups
