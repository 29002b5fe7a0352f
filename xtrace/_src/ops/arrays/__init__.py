"""Operations that create, reshape, join, slice, index and sort arrays."""
