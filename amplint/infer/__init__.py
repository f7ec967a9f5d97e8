"""From source to dtype facts: an abstract interpretation that never imports or runs the code it reads."""
