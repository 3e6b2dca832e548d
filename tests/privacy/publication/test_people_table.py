"""What a release says about people is shared by at least k of them."""

from __future__ import annotations

from collections import Counter

import pytest

from gazeveil.privacy.publication.names import PublicationChoices, people_table


def people(count: int) -> dict[str, dict[str, object]]:
    return {
        f"p{i}": {"Age": 20 + i, "sex": "fm"[i % 2], "handedness": "left", "ipd": 60.1 + i}
        for i in range(count)
    }


def smallest_group(rows: dict[str, dict[str, object]], everybody: int) -> int:
    sizes = Counter(tuple(sorted(map(str, row.items()))) for row in rows.values())
    without = everybody - len(rows)
    return min([*sizes.values(), *([without] if without else [])])


def test_age_and_gender_go_out_in_groups_and_nothing_else() -> None:
    table = people_table(people(12), PublicationChoices(k=4))
    rows = {p: dict(r) for p, r in table.rows.items()}
    assert {n for r in rows.values() for n in r} == {"age", "gender"}
    assert smallest_group(rows, 12) >= 4
    assert table.guarantee is not None
    assert table.guarantee.k == 4
    assert "Not published about people: handedness, ipd." in table.notes


@pytest.mark.parametrize("lacking", [1, 2, 3, 4, 6])
def test_people_without_an_attribute_do_not_stand_out(lacking: int) -> None:
    known = people(12)
    for i in range(lacking):
        del known[f"p{i}"]["sex"]
    table = people_table(known, PublicationChoices(k=4))
    rows = {p: dict(r) for p, r in table.rows.items()}
    assert smallest_group(rows, 12) >= 4
    names = {n for r in rows.values() for n in r}
    # Fewer than k gaps would single people out, so the attribute is left out for all.
    assert names == ({"age"} if lacking < 4 else {"age", "gender"})


def test_too_few_people_have_no_table_and_that_is_said() -> None:
    table = people_table(people(3), PublicationChoices(k=4))
    assert not table.rows
    assert table.guarantee is None
    assert any("because 3 people have them" in note for note in table.notes)
    assert people_table({"p": {}}, PublicationChoices()).rows == {}


def test_what_is_kept_goes_out_as_it_is() -> None:
    whole = people_table(people(5), PublicationChoices(("attributes",)))
    assert {p: dict(r) for p, r in whole.rows.items()} == people(5)
    assert whole.guarantee is None
    one = people_table(people(8), PublicationChoices(("handedness",)))
    assert {r["handedness"] for r in one.rows.values()} == {"left"}
    assert one.kept == ("handedness",)
    exact = people_table(people(8), PublicationChoices(("Age",)))
    assert exact.rows["p3"]["Age"] == 23
    assert "age" not in exact.rows["p3"]
