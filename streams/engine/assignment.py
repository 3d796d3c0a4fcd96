"""Assignment of partitions to the members of a group: a pure function of the partitions that each member had before.

A partition number denotes the partition with this number in every topic of the stage and in its changelogs. So one
member always has all partitions with this number.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain


@dataclass(frozen=True, slots=True)
class OwnedPartitions:
    """The partitions that a member had when it joined.

    `generation` counts the assignments of the group. When two members claim a partition, the member with the higher
    generation gets it. A member that returns after an absence has a lower generation.
    """

    generation: int = 0
    actives: frozenset[int] = frozenset()
    standbys: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """A member's new partitions, sorted. It handles `actives`; for `standbys` it only keeps the tables up to date."""

    actives: tuple[int, ...]
    standbys: tuple[int, ...] = ()


def assign(count: int, owned: Mapping[str, OwnedPartitions], *, replicas: int = 0) -> dict[str, MemberAssignment]:
    """Assign the partitions 0 to `count` - 1 to the members.

    Each partition has one member, and the partition counts of two members differ by at most one. A member keeps its
    partitions and gives up only the surplus, first the partitions that a returning member had before. The result
    depends only on the owned partitions, not on the order of the members.

    With `replicas`, each partition is also a standby of `replicas` other members, or of all others if there are fewer.
    A standby stays with its member if the balance allows it. Standbys are balanced nearly as well as the active
    partitions.

    Raises:
        ValueError: there is no member.
    """
    if not owned:
        raise ValueError("a group has at least one member")
    members = sorted(owned)
    actives = _assign_actives(count, owned, members)
    standbys: dict[str, set[int]] = {member: set() for member in members}
    if replicas:
        standbys = _assign_standbys(count, owned, actives, min(replicas, len(members) - 1))
    return {
        member: MemberAssignment(tuple(sorted(actives[member])), tuple(sorted(standbys[member]))) for member in members
    }


def _assign_actives(count: int, owned: Mapping[str, OwnedPartitions], members: list[str]) -> dict[str, set[int]]:
    by_age = sorted(members, key=lambda member: -owned[member].generation)
    has = {member: set[int]() for member in members}
    taken = set[int]()
    for member in by_age:
        has[member] = {number for number in owned[member].actives if 0 <= number < count} - taken
        taken |= has[member]
    behind = [member for member in members if len(has[member]) < count // len(members)]
    had = set(chain.from_iterable(owned[member].actives for member in behind))
    quotas = _quotas(count, has, had)
    free = set(range(count)) - taken
    free |= _give_up(has, quotas, had)
    wanting = [member for member in by_age if len(has[member]) < quotas[member]]

    def fill(member: str, numbers: Iterable[int]) -> None:
        room = quotas[member] - len(has[member])
        chosen = sorted(free.intersection(numbers))[:room]
        has[member].update(chosen)
        free.difference_update(chosen)

    for member in wanting:
        fill(member, owned[member].actives)
    for member in wanting:
        fill(member, owned[member].standbys)
    for member in wanting:
        fill(member, free)
    return has


def _quotas(count: int, has: Mapping[str, set[int]], had: set[int]) -> dict[str, int]:
    """Return the number of partitions that each member gets.

    If `count` is not a multiple of the number of members, some members get one more. A member that already has one more
    keeps it. `had`: the partitions that returning members had before. Among members with equally many partitions, the
    member with more partitions outside `had` gets the larger quota, so that it gives up fewer of its own partitions.
    """
    least, one_more = divmod(count, len(has))
    largest = sorted(has, key=lambda member: (-min(len(has[member]), least + 1), -len(has[member] - had), member))
    return {member: least + (place < one_more) for place, member in enumerate(largest)}


def _give_up(has: Mapping[str, set[int]], quotas: Mapping[str, int], had: set[int]) -> set[int]:
    """Take from each member the partitions above its quota, first those in `had`. Return the taken partitions."""
    given_up = set[int]()
    for member, numbers in has.items():
        excess = len(numbers) - quotas[member]
        if excess > 0:
            order = sorted(numbers, key=lambda number: (number not in had, -number))
            given_up.update(order[:excess])
            numbers.difference_update(order[:excess])
    return given_up


def _assign_standbys(
    count: int, owned: Mapping[str, OwnedPartitions], actives: Mapping[str, set[int]], replicas: int
) -> dict[str, set[int]]:
    has: dict[str, set[int]] = {member: set() for member in actives}
    followers = dict.fromkeys(range(count), 0)
    most = -(-count * replicas // len(actives))
    for member in has:
        # A member that handled a partition until now already has its table.
        kept = chain(sorted(owned[member].actives), sorted(owned[member].standbys))
        for number in kept:
            if len(has[member]) == most:
                break
            open_place = followers.get(number, replicas) < replicas
            if open_place and number not in actives[member] and number not in has[member]:
                has[member].add(number)
                followers[number] += 1
    fewest = [(len(numbers), member) for member, numbers in has.items()]
    heapq.heapify(fewest)
    for number in followers:
        passed = []
        while followers[number] < replicas:
            size, member = heapq.heappop(fewest)
            if number in actives[member] or number in has[member]:
                passed.append((size, member))
                continue
            has[member].add(number)
            followers[number] += 1
            passed.append((size + 1, member))
        for entry in passed:
            heapq.heappush(fewest, entry)
    _level(has, actives)
    return has


def _level(has: Mapping[str, set[int]], actives: Mapping[str, set[int]]) -> None:
    """Move standbys from members with many to the member with the fewest, while that improves the balance."""
    while True:
        ranked = sorted(has, key=lambda member: (len(has[member]), member))
        fewest, *others = ranked
        for most in reversed(others):
            movable = has[most] - has[fewest] - actives[fewest]
            if len(has[most]) - len(has[fewest]) >= 2 and movable:
                number = max(movable)
                has[most].remove(number)
                has[fewest].add(number)
                break
        else:
            return
