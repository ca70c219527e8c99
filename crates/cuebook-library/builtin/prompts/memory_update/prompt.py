METADATA = {
    "prompt_id": "memory_update",
    "name": "Memory Update",
    "version": "1.0.0",
    "type": "memory_update",
    "extends": None,
    "template": "template.md",
    "description": "Brings a memory document (project.md or user.md) up to date after a session.",
    "metadata": {
        "author": "cuebook",
        "tags": ["memory"],
    },
}

VARIABLES = {
    "required": [
        {"name": "current_memory", "type": "string", "description": "The memory document as it is; may be empty."},
        {"name": "session_summary", "type": "string", "description": "Summary of the session to learn from."},
    ],
    "optional": [
        {
            "name": "memory_kind",
            "type": "string",
            "description": "Which memory to update: \"project\" or \"user\".",
            "default": "project",
        },
    ],
    "custom": [
        {
            "name": "max_lines",
            "type": "integer",
            "description": "Length in lines that the memory should stay within; 0 sets no limit.",
            "default": 150,
        },
    ],
}
