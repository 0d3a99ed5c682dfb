"""One ADD and one DEL of a contender, checked."""
from collections.abc import Callable

from contenders import Contender
from pod_state import check_attached, check_detached
from runner import Runner
from series import Record


def take_turn(runner: Runner, contender: Contender, who: str, pod: str, group: str, record: Record | None,
              after_add: Callable[[], None] = lambda: None) -> None:
    """One ADD and one DEL; without a record they are not measured."""
    added = contender.add(pod)
    if contender.links:
        check_attached(runner, who, contender.netns, contender.links)
    if record:
        record.add_parts(group, who, 'ADD', added)
        after_add()
    deleted = contender.delete(pod)
    if contender.links:
        check_detached(runner, who, contender.netns, contender.links)
    if record:
        record.add_parts(group, who, 'DEL', deleted)
