"""The modules of bench/peers; README.md says where to begin."""
