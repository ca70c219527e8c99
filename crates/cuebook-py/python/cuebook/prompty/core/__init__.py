"""Messages, streams and connections, as in `prompty.core`."""
