"""What only reproduces the papers: exact optima. Nothing else imports it."""
