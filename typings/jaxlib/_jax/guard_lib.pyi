"""jaxlib's guards of transfers."""

import enum

class TransferGuardLevel(enum.Enum):
    ALLOW = ...

class GarbageCollectionGuardLevel(enum.Enum):
    ALLOW = ...

class _State:
    host_to_device: TransferGuardLevel | None
    device_to_device: TransferGuardLevel | None
    device_to_host: TransferGuardLevel | None

def global_state() -> _State: ...
def thread_local_state() -> _State: ...
