"""Trust: whose words a text holds, what a quote proves, and which statements are orders to the assistant; pure."""
