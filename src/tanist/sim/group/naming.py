"""How the group and its controllers are called, and where they are."""

from tanist.controller.group_record import group_path

NAME, CLUSTER = "g", "c"
REGISTRY = "registry"
CONTROLLER = "controller"
"""How the names of controllers begin."""
ROOT = "/tanist"
"""Where in the registry all records begin."""
RECORD_PATH = ROOT + group_path(NAME)


def address_of(broker_id: int) -> str:
    return f"127.0.0.1:{10000 + broker_id}"
