METADATA = {
    "prompt_id": "history_compression",
    "name": "History Compression",
    "version": "1.0.0",
    "type": "compression",
    "extends": None,
    "template": "template.md",
    "description": "Condenses the older messages of a conversation into a summary that takes their place.",
    "metadata": {
        "author": "cuebook",
        "tags": ["compression", "context"],
    },
}

VARIABLES = {
    "required": [
        {"name": "message_count", "type": "integer", "description": "Number of messages to condense."},
        {"name": "target_length", "type": "integer", "description": "Length of the summary to stay within, in tokens."},
    ],
    "optional": [
        {
            "name": "messages",
            "type": "list",
            "description": "The messages: objects with `role` and `content`. If empty, the caller sends them along.",
            "default": [],
        },
        {
            "name": "previous_summary",
            "type": "string",
            "description": "Summary of what came before these messages, to be merged into the new one.",
            "default": "",
        },
    ],
    "custom": [],
}

# The messages are part of the rendered text.
LIMITS = {
    "max_output_size": 2000000,
}
