"""The picture: Streamlit pages and Altair charts; never imports TensorFlow, never times anything."""
