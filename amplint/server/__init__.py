"""What ``amplint server`` does: findings, fixes and dtypes for editors, by the language server protocol."""
