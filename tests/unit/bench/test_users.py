"""What bench/users.py writes for a user whose memory is copied from another's."""

from __future__ import annotations

import json

from bench.users import AT_ONCE, FULL, User
from memstream.schemas import ids


def test_a_copied_record_has_the_names_of_its_user_and_ids_of_its_own_that_still_belong_together() -> None:
    user = User(12_345)
    observation = ids.observation_id("key", "t1", "user", "Has a cat")
    stored = {"fact_id": ids.fact_id("key", observation), "applied": [observation], "of": user.like.name}
    copied = json.loads(user.instead_of(user.like, json.dumps(stored | {"tenant_id": user.like.tenant})))
    assert copied["of"] == user.name == "person00012345"
    assert copied["tenant_id"] == user.tenant == "tenant000123"
    assert copied["fact_id"] == user.id_for(stored["fact_id"]) != stored["fact_id"]
    assert copied["applied"] == [user.id_for(observation)]
    assert user.id_for(observation) != User(12_355).id_for(observation)


def test_those_who_speak_are_ten_others_in_each_round_and_all_there_are_where_there_are_few() -> None:
    for users in (FULL.few, FULL.users):
        rounds = list(FULL.speakers(users))
        numbers = [user.number for speaking in rounds for user in speaking]
        assert len(rounds) == FULL.rounds + 1, "the first warms up"
        assert all(len(speaking) == AT_ONCE for speaking in rounds)
        assert len(set(numbers)) == len(numbers)
        assert min(numbers) >= AT_ONCE
        assert max(numbers) < users
    assert max(numbers) > 0.8 * FULL.users, "they are all over"
