"""Azure OpenAI and Azure AI Foundry."""
