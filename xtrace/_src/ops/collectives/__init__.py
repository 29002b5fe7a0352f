"""Operations along mapped axes, and the primitive of `shard_map`."""
