"""The API server's rules: storage, validation, patches, watches, discovery."""
