"""Console under `/console`: pages for people about facts, the turns of a user, and recall.

Each page calls the services of the REST API with the rights of the same credential. The console decides nothing and
reads no store. The pages need no script (docs/design/console.md).
"""
