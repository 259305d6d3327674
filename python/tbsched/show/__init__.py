"""Every result as a person sees it: text, plots."""
