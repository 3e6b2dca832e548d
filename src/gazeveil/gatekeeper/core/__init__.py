"""The Gatekeeper without a network: samples in, quantised events and answers out."""
