"""What bench/peers is made of; README.md says where to begin."""
