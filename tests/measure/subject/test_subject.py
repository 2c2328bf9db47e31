"""Inside a subject: scripts run as users would run them, and errors are told in a line that helps."""

from measure.subject.errors import shorten


def test_of_a_long_message_the_line_that_helps_is_kept() -> None:
    in_user_code = (
        'in user code:\n\n    File "<x>", line 3, in element  *\n        y = x[0]\n\n    ValueError: slice index 0\n'
    )
    for text, line in (
        ("{{function_node __wrapped__Foo}} Bad shapes: [2] vs. [3] [Op:AddV2] name: ", "Bad shapes: [2] vs. [3]"),
        (in_user_code, "ValueError: slice index 0"),
        ("Graph execution error:\n\nDetected at node x\nout of range\nand more", "out of range"),
        ("Graph execution error:\n\n    Detected at node x", "Detected at node x"),
        ("", ""),
        ("Shapes must be equal:\n\n  [2] and\n", "Shapes must be equal: [2] and"),
        ("in user code:\n\n    ValueError: these differ:\n    a, b\n", "ValueError: these differ: a, b"),
    ):
        assert shorten(text) == line
