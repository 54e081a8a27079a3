"""`fallow doctor`: what this user may do on this host, and what each plugin finds. It changes nothing."""
