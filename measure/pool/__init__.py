"""The processes that measure: how they are started and limited, what they say, and how they end."""
