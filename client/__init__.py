"""What a chat service uses: produce turns, subscribe to fact updates, recall."""
