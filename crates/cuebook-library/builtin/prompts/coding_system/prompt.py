METADATA = {
    "prompt_id": "coding_system",
    "name": "Coding System Prompt",
    "version": "1.0.0",
    "type": "system",
    "extends": "general_system",
    "template": "template.md",
    "description": "System prompt for an agent that reads, changes and checks code in a workspace.",
    "metadata": {
        "author": "cuebook",
        "tags": ["system", "coding"],
    },
}

# `instructions` is inherited from general_system.
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
        {
            "name": "file_tree",
            "type": "string",
            "description": "Listing of the workspace, one entry per line; if not given, the workspace is listed.",
            "source": "system",
            "default": "",
        },
        {
            "name": "tech_stack",
            "type": "string",
            "description": "Languages and frameworks, e.g. \"TypeScript, React\"; if not given, the project's files decide.",
            "source": "system",
            "default": "",
        },
    ],
    "custom": [
        {
            "name": "code_style",
            "type": "string",
            "description": "Style of the code the agent writes, e.g. \"functional and immutable\".",
            "default": "clean and readable",
        },
        {
            "name": "max_file_length",
            "type": "integer",
            "description": "Length of a new file in lines that the agent should stay within; 0 sets no limit.",
            "default": 500,
        },
        {
            "name": "test_command",
            "type": "string",
            "description": "Command that runs the tests; if empty, the agent looks it up in the project.",
            "default": "",
        },
        {
            "name": "lint_command",
            "type": "string",
            "description": "Command that runs the linter; if empty, the agent looks it up in the project.",
            "default": "",
        },
        {
            "name": "language_preference",
            "type": "string",
            "description": "Language of replies, as a code or a name (\"ja\", \"English\"); if empty, the user's.",
            "default": "",
        },
    ],
}
