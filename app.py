"""Mapbench's front door: page configuration, navigation, and what the server does around pages."""

import streamlit as st

from measure import client, hosting
from views.ui import browser, guard, look, session
from workloads import descriptions, places

# Name → its icon, and the hint on it.
PAGES = {
    "compare": (
        ":material/compare_arrows:",
        "Measures ways of mapping a function over a batch, and says which to use here.",
    ),
    "sweep": (":material/stacked_line_chart:", "Measures over a range of sizes, and says where the winner changes."),
    "claims": (":material/fact_check:", "Tries what is said about mapping in TensorFlow, and says what is true here."),
    "runs": (":material/history:", "Every run that is kept: to find, open, export, delete, and import."),
}


def draw() -> None:
    """Draw the page that the address names."""
    descriptions.take(client.shared().host().files)  # files of a person's own are executed by the worker alone
    st.set_page_config(page_title="Mapbench", page_icon=look.ICON, layout="wide")
    st.logo(look.LOGO, size="large")
    pages = [
        st.Page(
            f"views/pages/{name}.py", title=name.title(), icon=icon, url_path=name, default=name == "compare", help=text
        )
        for name, (icon, text) in PAGES.items()
    ]
    page = st.navigation(pages, position="top")
    page.run()
    if places.hosted() and not places.viewer():
        line, everything = session.allowed(hosting.limits())
        with st.expander(line, type="compact", key="allowed"):
            st.caption(everything)
    browser.count_steps()
    if client.shared().host().state == "ready":  # while TensorFlow is loaded, the first pages come first
        guard.give_way()


if __name__ == "__main__":
    # Streamlit runs this file as a script at each interaction.
    draw()
else:
    # `streamlit run` imports it once, for what serves the pages.
    import os
    import sys

    from starlette.middleware import Middleware

    from measure.run.place import StoreError
    from views.pages import access, server
    from views.pages.preview import Preview

    try:
        hosting.check()
        shared = client.shared()
        if at := hosting.metrics():
            from measure import metrics  # only who asks for it has it loaded

            metrics.serve(*at)
    except (hosting.SettingError, StoreError) as error:
        sys.exit(f"error: {error}")
    except OSError as error:
        sys.exit(f"error: MAPBENCH_METRICS={os.environ['MAPBENCH_METRICS']!r} cannot be had: {error.strerror}")
    descriptions.take({})
    shared.ensure_worker()  # now, before threads of pages give way, so that it does not
    guard.serve()
    access.check_names()
    server.log_forged_values_briefly()
    server.take_values_of_their_types()
    parts = (access.Access, session.Cookie, Preview, server.Downloads, server.Uploads, server.Messages)
    app = st.App(
        __file__, middleware=[Middleware(part) for part in parts], exception_handlers={500: access.fault},
        lifespan=access.announcing,
    )  # fmt: skip
