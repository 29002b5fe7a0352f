"""Arrays made and converted, their dtypes and their methods."""
