from tanist.model.java_order import java_order


def test_characters_outside_the_first_plane_sort_before_its_last_ones() -> None:
    # By code point it would be the other way round.
    assert sorted(["\uff5e", "\U0001f600", "z", "\ue000"], key=java_order) == [
        *("z", "\U0001f600", "\ue000", "\uff5e")
    ]


def test_a_prefix_sorts_first() -> None:
    assert sorted(["ab", "a", "", "b"], key=java_order) == ["", "a", "ab", "b"]


def test_half_a_character_sorts_like_any_code_unit() -> None:
    assert sorted(["\ud83d", "\ue000", "a"], key=java_order) == ["a", "\ud83d", "\ue000"]
