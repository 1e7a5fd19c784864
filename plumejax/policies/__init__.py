"""policies: agents that are not learned."""
