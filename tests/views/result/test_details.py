"""The tabs of a comparison: the code of one strategy, and what is different in that of another."""

from tests import synthetic
from tests.pages import RUN_ID, FakeClient, calm, open_page


def test_the_code_of_two_strategies_is_shown_with_its_differences(fake: FakeClient) -> None:
    fake.show(synthetic.run(RUN_ID))
    app = open_page(run=RUN_ID, tab="Code")
    calm(app.selectbox(key="code_of").set_value("map_fn.xla").run())
    app = calm(app.selectbox(key="code_against").set_value("batched.xla").run())
    changes, one, other = (element.value for element in app.code[-3:])
    assert changes.startswith("--- map_fn.xla\n+++ batched.xla\n")
    assert (
        "-    return tf.sqrt(elems)  # map_fn.xla" in changes and "+    return tf.sqrt(elems)  # batched.xla" in changes
    )
    assert one.endswith("# map_fn.xla") and other.endswith("# batched.xla")
