"""Reads what stands beside the settings in the code: the string below a field says what it means."""

import ast
import inspect

import msgspec


def field_texts(kind: type[msgspec.Struct]) -> dict[str, str]:
    """By the name of each field, its text on one line."""
    (tree,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(tree, ast.ClassDef)
    texts: dict[str, str] = {}
    for field, after in zip(tree.body, tree.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            texts[field.target.id] = " ".join(str(after.value.value).split())
    return texts
