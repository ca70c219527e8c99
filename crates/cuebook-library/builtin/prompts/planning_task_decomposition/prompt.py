METADATA = {
    "prompt_id": "planning_task_decomposition",
    "name": "Task Decomposition",
    "version": "1.0.0",
    "type": "planning",
    "extends": None,
    "template": "template.md",
    "description": "Breaks a task into ordered steps, each with its dependencies and a check that shows it is done.",
    "metadata": {
        "author": "cuebook",
        "tags": ["planning"],
    },
}

VARIABLES = {
    "required": [
        {"name": "task", "type": "string", "description": "The task to plan, in the user's words."},
    ],
    "optional": [
        {
            "name": "context",
            "type": "string",
            "description": "Background for the plan: findings so far, relevant documents, the state of the work.",
            "default": "",
        },
        {
            "name": "constraints",
            "type": "list",
            "description": "Conditions the plan must meet, one string each.",
            "default": [],
        },
        {
            "name": "tools",
            "type": "list",
            "description": "Tools the executing agent has: objects with `name` and `description`, or plain names.",
            "default": [],
        },
        {
            "name": "max_steps",
            "type": "integer",
            "description": "Largest number of steps the plan may have; 0 sets no limit.",
            "default": 0,
        },
    ],
    "custom": [],
}
