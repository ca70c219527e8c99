METADATA = {
    "prompt_id": "greeting",
    "name": "Greeting",
    "version": "1.0.0",
    "type": "system",
    "description": "Welcomes a user and says how the assistant works",
    "metadata": {"tags": ["example"]},
}

VARIABLES = {
    "required": [
        {"name": "user_name", "type": "string", "description": "who is greeted"},
    ],
    "optional": [
        {"name": "topics", "type": "list", "default": []},
    ],
    "custom": [
        {"name": "tone", "type": "string", "default": "friendly"},
    ],
}
