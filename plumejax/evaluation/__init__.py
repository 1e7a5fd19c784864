"""evaluation: how well an agent does, with its uncertainty."""
