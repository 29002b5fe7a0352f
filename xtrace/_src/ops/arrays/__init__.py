"""Operations that move, join, pick and order the elements of arrays."""
