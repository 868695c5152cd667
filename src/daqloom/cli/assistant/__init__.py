"""Server of the Model Context Protocol (MCP): assistants and editors use daqloom as tools."""
