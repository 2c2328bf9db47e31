"""The memo of what is made of runs."""

import pytest

from views.ui import memo
from views.ui.memo import Memo


def test_what_is_made_of_runs_goes_with_the_least_recently_opened_of_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memo, "_MOST_BYTES", 100)
    made, values = list[str](), Memo(__name__)

    def opened(run_id: str, size: int) -> str:
        made.clear()
        memo.opened(run_id, size)
        for key in ("of no run", (run_id, 1, "findings"), (run_id, 1, "picture")):
            values.get(key, lambda key=key: made.append(key[0]))
        return "".join(made)

    assert [opened("a", 40), opened("b", 40), opened("a", 40)] == ["oaa", "bb", ""]
    assert [opened("c", 40), opened("a", 40), opened("b", 40)] == ["cc", "", "bb"]
    assert [opened("d", 200), opened("d", 200), opened("b", 40)] == ["dd", "", "bb"], "one run stays in any case"
