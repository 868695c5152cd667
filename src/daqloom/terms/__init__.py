"""Words that `daqloom explain` explains: keys, metrics, counters, and the glossary."""
