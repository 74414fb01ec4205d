"""Operations: of methods, of published tables, of general arms."""
