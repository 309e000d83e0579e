"""mcp: traces for AI assistants, over the Model Context Protocol. It reads what is below one folder."""
