"""Published numbers and figures: records, their computation from studies, their tables."""
