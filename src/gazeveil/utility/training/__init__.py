"""Networks that a user keeps: trained on some people, judged on others beside their floors."""
