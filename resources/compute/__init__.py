"""Heavy work on this process or on a Ray cluster, behind one interface. What the work is belongs to the nouns."""
