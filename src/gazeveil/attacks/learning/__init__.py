"""How attackers learn people from vectors and weigh several kinds of evidence."""
