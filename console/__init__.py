"""What a terminal needs: commands, runs of jobs, plans and reports in text. Nothing is computed or stored here."""
