"""The one layout of a text, however it was written."""

import pytest

from tilelang.grammar import format_text
from tilelang.grammar.fmt import _CUTS, _KEYWORDS, _MODIFIERS, _STEPS
from tilelang.grammar.parser import SCHEDULE, first_words, keywords
from tilelang.grammar.scan import _ITEMS

LAYOUTS = [
    ("schedule s for f {units block=1 warp\ntile i=4 -> block}", "schedule s for f { units block = 1 warp\n  tile i=4 -> block }\n"),
    ("schedule s for f {\ntile m=A\nn=B -> block\n# why\nsplit k=1\n}",
     "schedule s for f {\n  tile m=A\n    n=B -> block\n  # why\n  split k=1\n}\n"),
    ("schedule s(a=4) for f {\nload X in shared\npad (4) ahead 1 {\nsplit i=4\n}\n}",
     "schedule s(a = 4) for f {\n  load X in shared\n    pad (4) ahead 1 {\n    split i=4\n  }\n}\n"),
    ("computation f {\na[i]=X[i]+ # one\n# two\nX[i]\noutput b[i]=max(a[i],\n1.0) allow\ntf32\n}",
     "computation f {\n  a[i] = X[i] +  # one\n    # two\n    X[i]\n  output b[i] = max(a[i],\n    1.0) allow\n    tf32\n}\n"),
    ("when M<4 {\nuse x\n} else\n{\n}", "when M < 4 {\n  use x\n} else\n{\n}\n"),
    ("schedule s for f {\ndo x (m=n,\nk=k)\n...\n}", "schedule s for f {\n  do x (m=n,\n    k=k)\n  ...\n}\n"),
]  # fmt: skip


@pytest.mark.parametrize("text, laid_out", LAYOUTS)
def test_a_text_has_one_layout(text: str, laid_out: str) -> None:
    assert format_text(text) == laid_out == format_text(laid_out)


def test_the_words_of_the_layout_are_those_of_the_grammar() -> None:
    assert _KEYWORDS | _MODIFIERS <= set(keywords().values())
    assert first_words(SCHEDULE) | {"open"} == _STEPS > _CUTS
    assert first_words("") == {*_ITEMS, "tilelang"}
