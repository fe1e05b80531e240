"""Where an expression is cut into tokens."""

import pytest

from tanist.broker.sql.tokens import MAX_EXPRESSION_CHARS, BadExpression, Token, TokenKind, tokenize


def cut(text: str) -> list[str]:
    return [token.text for token in tokenize(text)[:-1]]


def kinds(text: str) -> list[TokenKind]:
    return [token.kind for token in tokenize(text)[:-1]]


def test_names_signs_and_values_are_cut_with_or_without_blanks() -> None:
    assert cut("a>=5AND b<>'x'") == ["a", ">=", "5", "AND", "b", "<>", "'x'"]
    assert cut("a<=-.5") == ["a", "<=", "-", ".5"]
    assert cut("\ta\r\n=\f 5 ") == ["a", "=", "5"]


def test_a_token_knows_where_it_begins_and_a_name_its_capitals() -> None:
    assert tokenize(" between") == [
        Token(TokenKind.NAME, "between", "BETWEEN", 1),
        Token(TokenKind.END, "", "", 8),
    ]


@pytest.mark.parametrize("text", ["0", "7", "1234567890123456789", "5L", "5l"])
def test_digits_are_a_whole_number(text: str) -> None:
    assert kinds(text) == [TokenKind.WHOLE]


@pytest.mark.parametrize("text", ["5.", ".5", "5.5", "007.5", "5e3", "5E+3", "5.e-3", ".5e3", "0.0"])
def test_a_point_or_an_exponent_makes_a_fraction(text: str) -> None:
    assert kinds(text) == [TokenKind.FRACTION]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("007", ["0", "0", "7"]),
        ("0L", ["0", "L"]),
        ("5e", ["5", "e"]),
        ("5x", ["5", "x"]),
        ("1.2.3", ["1.2", ".3"]),
    ],
)
def test_what_is_no_number_is_cut_as_rocketmq_cuts_it(text: str, tokens: list[str]) -> None:
    assert cut(text) == tokens


@pytest.mark.parametrize("text", ["''", "'a'", "'it''s'", "''''", "'-- /* x'", "'Größe 🚀'", "'\n'"])
def test_a_string_ends_at_its_quote_and_two_are_one(text: str) -> None:
    assert kinds(text) == [TokenKind.STRING]
    assert cut(text) == [text]


@pytest.mark.parametrize("name", ["a", "_", "$", "A9_$", "größe"[:2]])
def test_a_name_is_made_of_letters_digits_and_two_signs(name: str) -> None:
    assert kinds(name) == [TokenKind.NAME]


@pytest.mark.parametrize("text", ["a -- x = 6\n = 5", "a /* x */ = 5", "a/***/=/* * / ** */5", "a --\r= 5"])
def test_comments_are_left_out(text: str) -> None:
    assert cut(text) == ["a", "=", "5"]


def test_a_line_comment_without_an_end_of_line_is_two_signs() -> None:
    assert cut("a = --5") == ["a", "=", "-", "-", "5"]


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("a = #", 4),
        ("größe", 2),
        ("a != 5", 2),
        ('"a"', 0),
        ("a = 'x", 4),
        ("'it''", 4),
        ("a.b", 1),
        ("\0", 0),
    ],
)
def test_what_is_no_token_is_refused_where_it_stands(text: str, position: int) -> None:
    with pytest.raises(BadExpression) as refused:
        tokenize(text)
    assert refused.value.position == position


def test_the_error_shows_only_so_much_of_the_text() -> None:
    with pytest.raises(BadExpression) as refused:
        tokenize("'" + "x" * 5000)
    assert "the quote that ends this string" in str(refused.value)
    assert len(str(refused.value)) < 150


def test_a_text_that_is_too_long_is_not_looked_at() -> None:
    tokenize("a" * MAX_EXPRESSION_CHARS)
    with pytest.raises(BadExpression, match="found 1000000 of them"):
        tokenize("#" * 1_000_000)


@pytest.mark.parametrize("piece", ["/*", "/* *", "'a", "''", "--", "0x", "1e", ".", "*/", "/**"])
def test_no_text_takes_more_than_one_walk(piece: str) -> None:
    """Alternatives that could be read in two ways would take for ever here."""
    text = (piece * MAX_EXPRESSION_CHARS)[:MAX_EXPRESSION_CHARS]
    assert 0 < end_of(text) <= len(text)


def end_of(text: str) -> int:
    """How far the text could be cut."""
    try:
        return tokenize(text)[-1].position
    except BadExpression as error:
        return error.position or len(text)
