"""The store finds what it holds."""

from hypothesis import given
from hypothesis import strategies as st

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.resources import ResourceKey
from arena_topo.sandbox.api.store import Store

PODS: ResourceKey = ("", "pods")
REFERENCES = st.lists(
    st.builds(
        lambda uid, controller: {"uid": uid, "controller": controller}, st.sampled_from("xy"), st.booleans()
    ),
    max_size=2,
)
WRITES = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from("12"), st.one_of(st.none(), REFERENCES)), max_size=20
)
"""What is put in a namespace, under a name, with its owners; None: it is dropped."""


def by_looking(store: Store, namespace: str, uid: str) -> list[Object]:
    """Look through all objects of a namespace for those that *uid* controls."""
    return [
        stored.body
        for stored in store.scan(PODS, namespace)
        if {"uid": uid, "controller": True} in stored.body["metadata"]["ownerReferences"]
    ]


@given(WRITES)
def test_a_controller_finds_its_objects_whoever_owned_them_before(
    writes: list[tuple[str, str, list[Object] | None]],
) -> None:
    """As if it had looked through all, also in a store that was dumped and loaded."""
    store, loaded = Store(), Store()
    for namespace, name, owners in writes:
        meta = {"namespace": namespace, "name": name, "ownerReferences": owners}
        if owners is not None:
            store.put(PODS, {"metadata": meta})
        elif found := store.get(PODS, namespace, name):
            store.drop(PODS, found.body)
    loaded.load(store.dump())
    for each in (store, loaded):
        for namespace in "ab":
            for uid in "xy":
                assert by_looking(each, namespace, uid) == each.controlled(PODS, namespace, uid)
