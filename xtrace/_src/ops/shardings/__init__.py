"""Operations on the devices, shardings and layouts of values."""
