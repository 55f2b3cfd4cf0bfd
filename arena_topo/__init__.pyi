from arena_topo.api import (
    ArenaTopoError as ArenaTopoError,
)
from arena_topo.api import (
    Cluster as Cluster,
)
from arena_topo.api import (
    Job as Job,
)
from arena_topo.api import (
    JobHandle as JobHandle,
)
from arena_topo.api import (
    Plan as Plan,
)
from arena_topo.api import (
    Report as Report,
)
from arena_topo.api import (
    Topology as Topology,
)
from arena_topo.api import (
    connect as connect,
)
from arena_topo.api import (
    plan as plan,
)
from arena_topo.api import (
    predict as predict,
)
from arena_topo.api import (
    snapshot as snapshot,
)
from arena_topo.api import (
    submit as submit,
)

__version__: str
