"""Language: parse statements into claims. A locale pack has the words and rules of one language."""
