"""A document for each question: comparison, gate, cost, guideline, fleet, history, bench."""
