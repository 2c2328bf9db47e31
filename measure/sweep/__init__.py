"""A comparison over a range of sizes or of an option."""
