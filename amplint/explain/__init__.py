"""From an error text or a pasted traceback to the rule, the cause, the operands and the remedy. Never imports torch."""
