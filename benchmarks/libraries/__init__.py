"""Released libraries as benchmark cases: fetched from the package index, migrated, reduced (``python -m``)."""
