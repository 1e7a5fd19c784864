"""viewing: pictures: frames (pure), a window, plots."""
