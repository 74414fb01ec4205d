"""What a Program and a robot tell besides numbers: base parameters, formulas, checks, singular poses."""
