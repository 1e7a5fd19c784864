"""viewing: pictures: frames (pure), a window; drawings of results, searches and plumes."""
