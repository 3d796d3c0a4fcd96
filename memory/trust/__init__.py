"""Trust: the sources of the words in a text, the evidence of quotes, and orders to the assistant; pure."""
