"""The web shell: starlette, jinja2 and uvicorn around ``desk``. Nothing here decides about a cluster."""
