"""Two traces of one sequence, compared; and predictors scored against recordings."""
