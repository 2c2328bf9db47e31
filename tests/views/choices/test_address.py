"""Reading an address: which of its values are not valid, and which choices a stored request makes."""

from tests import synthetic
from views.choices import address


def test_an_address_without_parameters_has_no_faults():
    assert address.read({}) == address.Link()


def test_a_value_that_is_not_valid_is_said_with_what_is_used_instead():
    link = address.read({"size_batch": ["-4"], "dtype": ["float99"], "strategies": ["loop.eager", "nope"]})
    batch, dtype, strategy = link.notices
    assert batch.startswith("Batch=-4 is not valid") and batch.endswith("100 is used instead.")
    assert "'float99' is not valid" in dtype and dtype.endswith("float32 is used instead.")
    assert "'nope'" in strategy and link.strategies == ("loop.eager",)


def test_a_stored_request_makes_the_choices_of_all_widgets():
    request = synthetic.run().request
    values = address.of_request(request)
    assert values["strategies"] == request.strategies and values["size_batch"] == 100
    assert {"workload", "dtype", "device", "budget", "memory_limit", "threads", "seed"} <= values.keys()
