"""Access tokens of an identity provider (OpenID Connect): their keys, their claims, and the rights that claims give."""
