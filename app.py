"""Mapbench's front door: page configuration, navigation, and what is a step in the browser's history."""

import streamlit as st

from measure import client
from views.ui import allowance, giving_way, look, steps
from workloads import discovery


def draw() -> None:
    """Draw the page that the address names."""
    discovery.take(client.shared().host().files)  # files of a person's own are executed by the worker alone
    st.set_page_config(page_title="Mapbench", page_icon=look.ICON, layout="wide")
    st.logo(look.LOGO, size="large")
    page = st.navigation(
        [
            st.Page(
                "views/pages/compare.py",
                title="Compare",
                icon=":material/compare_arrows:",
                url_path="compare",
                default=True,
                help="Measures ways of mapping a function over a batch, and says which to use here.",
            ),
            st.Page(
                "views/pages/sweep.py",
                title="Sweep",
                icon=":material/stacked_line_chart:",
                url_path="sweep",
                help="Measures over a range of sizes, and says where the winner changes.",
            ),
            st.Page(
                "views/pages/claims.py",
                title="Claims",
                icon=":material/fact_check:",
                url_path="claims",
                help="Tries what is said about mapping in TensorFlow, and says what is true here.",
            ),
            st.Page(
                "views/pages/runs.py",
                title="Runs",
                icon=":material/history:",
                url_path="runs",
                help="Every run that is kept: to find, open, export, delete, and import.",
            ),
        ],
        position="top",
    )
    page.run()
    allowance.draw()
    steps.draw()
    if client.shared().host().state == "ready":  # while TensorFlow is loaded, the first pages come first
        giving_way.give_way()


if __name__ == "__main__":
    # Streamlit runs this file as a script at each interaction.
    draw()
else:
    # `streamlit run` imports it once, for what serves the pages.
    import os
    import sys

    from starlette.middleware import Middleware

    from measure import hosting
    from views.pages.cookie import Cookie
    from views.pages.downloads import Downloads
    from views.pages.preview import Preview
    from views.pages.uploads import Uploads

    try:
        hosting.check()
        if at := hosting.metrics():
            from measure import metrics  # only who asks for it has it loaded

            metrics.serve(*at)
    except hosting.SettingError as error:
        sys.exit(f"error: {error}")
    except OSError as error:
        sys.exit(f"error: MAPBENCH_METRICS={os.environ['MAPBENCH_METRICS']!r} cannot be had: {error.strerror}")
    discovery.take({})
    client.shared().ensure_worker()  # now, before threads of pages give way, so that it does not
    around = (Cookie, Preview, Downloads, Uploads)
    giving_way.serve()
    app = st.App(__file__, middleware=[Middleware(part) for part in around])
