"""views: frames become widgets, figures, text and HTML; the only place where numbers get units and colors."""
