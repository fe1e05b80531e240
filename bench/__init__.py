"""Speed and memory, as ratios in one run: ours beside a peer, interleaved, medians of several rounds."""
