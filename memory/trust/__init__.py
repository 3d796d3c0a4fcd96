"""Trust: decide who said a text, whether a quote supports a statement, and whether a text orders the assistant;
pure."""
