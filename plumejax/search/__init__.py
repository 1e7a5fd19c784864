"""search: the plume-search task, composed of plume, sensor, motion, reward, ending and start."""
