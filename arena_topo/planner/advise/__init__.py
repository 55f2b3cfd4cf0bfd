"""What else a user could ask for, or an administrator could do."""
