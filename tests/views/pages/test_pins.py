"""Runs that stay and runs that are gone, as the pages show them."""

import pytest

from tests.pages import calm, open_page, words
from tests.views.pages.test_runs import a_run, choose, fake, table, visit

__all__ = ["fake", "visit"]


def test_a_run_is_pinned_and_no_longer(visit, fake):
    fake.store.save(a_run(1))
    app = calm(choose(visit(), 0).button(key="runs_pin").click().run())
    assert fake.store.entries()[0].pinned and table(app)[0]["status"] == "complete, pinned"
    app = calm(choose(app, 0).button(key="runs_pin").click().run())
    assert not fake.store.entries()[0].pinned and table(app)[0]["status"] == "complete"


@pytest.mark.parametrize("made_room", [True, False])
def test_a_link_to_a_run_that_is_gone_says_so(fake, made_room):
    from measure.store import room

    run = a_run(1)
    fake.store.save(run)
    with fake.store.keeping._access.writing() as connection:
        room.remove(connection, [run.id], room.TO_MAKE_ROOM if made_room else room.BY_A_PERSON)
    said = words(open_page(run=run.id))
    assert f"Run {run.id} was {'removed' if made_room else 'deleted'} on 20" in said
    assert ("to make room for newer ones" in said) == made_room
