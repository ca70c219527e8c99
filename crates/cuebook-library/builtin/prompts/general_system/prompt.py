METADATA = {
    "prompt_id": "general_system",
    "name": "General System Prompt",
    "version": "1.0.0",
    "type": "system",
    "extends": None,
    "template": "template.md",
    "description": "System prompt for a general-purpose agent, and the base of every other agent's system prompt.",
    "metadata": {
        "author": "cuebook",
        "tags": ["system", "general"],
    },
}

VARIABLES = {
    "required": [
        {"name": "agent_name", "type": "string", "description": "Display name of the agent."},
    ],
    "optional": [
        {
            "name": "tools",
            "type": "list",
            "description": "Tools the agent can call: objects with `name` and `description`, or plain names.",
            "default": [],
        },
        {
            "name": "instructions",
            "type": "string",
            "description": "Further instructions for this agent, as Markdown; shown under their own heading.",
            "default": "",
        },
        {
            "name": "project_memory",
            "type": "string",
            "description": "Content of the project memory (project.md).",
            "default": "",
        },
        {
            "name": "user_memory",
            "type": "string",
            "description": "Content of the user memory (user.md).",
            "default": "",
        },
    ],
    "custom": [],
}
