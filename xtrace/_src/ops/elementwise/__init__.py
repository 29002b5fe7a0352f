"""Operations on each element: arithmetic, comparisons, special functions, selection."""
