"""Facts: how statements become facts, meet the known ones and change them."""
