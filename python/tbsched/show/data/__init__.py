"""Values as what JSON can hold. The keys stay; docs/reference/json.md has them."""
