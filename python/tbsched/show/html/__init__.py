"""Values as HTML: no script, no network, and nothing of the page around it is changed."""
